/** Only ever in memory. */
export interface RoleCredentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken: string;
  readonly expiresAt: Date;
}

export interface RoleRequest {
  readonly roleArn: string;
  readonly sessionName: string;
  readonly policy: string;
  readonly durationSeconds: number;
}

/** Who hands out credentials of a role. */
export interface RoleSessions {
  /** Raises AWS_REFUSED and AWS_UNAVAILABLE, with what to do about it. */
  assume(request: RoleRequest, signal?: AbortSignal): Promise<RoleCredentials>;
}
