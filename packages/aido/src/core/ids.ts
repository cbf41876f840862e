/** Letters and digits that survive being read aloud, without those that look alike. */
export const ID_ALPHABET = "23456789abcdefghjkmnpqrstuvwxyz";
export const ID_LENGTH = 8;
