/** Of the engine that a machine has when nobody says otherwise. */
export const SYSTEM_SOCKET = "/var/run/docker.sock";
