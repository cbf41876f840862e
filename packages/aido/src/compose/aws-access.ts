import { AidoError } from "@aido/sdk/protocol";
import type { Config } from "../config/config.ts";
import { AwsAccess } from "../core/aws/aws-access.ts";
import type { Clock } from "../core/clock.ts";

/** AWS permissions as the settings allow them; what speaks to STS is loaded when a sandbox asks for some. */
export function makeAwsAccess({ aws }: Pick<Config, "aws">, clock: Clock): AwsAccess {
  const { accessKeyId, secretAccessKey, sessionToken } = aws;
  return new AwsAccess({
    clock,
    settings: { ...aws, hasCredentials: accessKeyId !== undefined && secretAccessKey !== undefined },
    sessions: async () => {
      const { StsSessions } = await import("../aws/sts-sessions.ts");
      const settings = {
        endpoint: aws.stsEndpoint,
        region: aws.region,
        externalId: aws.externalId,
        credentials: () => {
          if (accessKeyId === undefined || secretAccessKey === undefined) {
            throw new AidoError("AWS_NOT_CONFIGURED", "There are no AWS credentials");
          }
          return {
            accessKeyId: accessKeyId.reveal(),
            secretAccessKey: secretAccessKey.reveal(),
            sessionToken: sessionToken?.reveal(),
          };
        },
      };
      return new StsSessions(settings, clock);
    },
  });
}
