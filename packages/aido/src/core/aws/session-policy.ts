import { AidoError, type AwsPermissions, type AwsService } from "@aido/sdk/protocol";

/** STS takes no longer one. */
const MAX_POLICY_CHARS = 2048;

interface Statement {
  Effect: "Allow";
  Action: readonly string[];
  Resource: "*";
  Condition?: { DateLessThan: { "aws:CurrentTime": string } };
}

/**
 * What of each service only looks. Left out is what hands out other credentials or changes something by being called,
 * though its name begins with Get.
 */
const READ_ACTIONS = {
  acm: "Describe* Get* List*",
  apigateway: "GET",
  appconfig: "Get* List*",
  athena: "BatchGet* Get* List*",
  autoscaling: "Describe* Get*",
  batch: "Describe* List*",
  bedrock: "Get* List*",
  cloudformation: "Describe* Get* List*",
  cloudfront: "Describe* Get* List*",
  cloudtrail: "Describe* Get* List* LookupEvents",
  cloudwatch: "Describe* Get* List*",
  codeartifact: "Describe* GetPackage* GetRepository* List* ReadFromRepository",
  codebuild: "BatchGet* List*",
  codecommit: "BatchGet* Describe* Get* GitPull List*",
  codepipeline: "Get* List*",
  dynamodb: "BatchGetItem ConditionCheckItem Describe* Get* List* PartiQLSelect Query Scan",
  ec2: "Describe* Get* List* Search*",
  ecr: "BatchCheckLayerAvailability BatchGet* Describe* Get* List*",
  ecs: "Describe* List*",
  eks: "Describe* List*",
  elasticache: "Describe* List*",
  elasticfilesystem: "Describe* List*",
  elasticloadbalancing: "Describe*",
  elasticmapreduce: "Describe* GetBlock* GetManaged* GetStudio* List*",
  es: "Describe* ESHttpGet ESHttpHead Get* List*",
  events: "Describe* List* TestEventPattern",
  firehose: "Describe* List*",
  glue: "BatchGet* Get* List* Search*",
  iam: "Get* List* Simulate*",
  kafka: "Describe* GetBootstrapBrokers GetCompatible* List*",
  kinesis: "Describe* Get* List*",
  kms: "Describe* GetKey* GetPublicKey List*",
  lambda: "Get* List*",
  logs: "Describe* FilterLogEvents Get* List* StartQuery StopQuery",
  organizations: "Describe* List*",
  rds: "Describe* DownloadDBLogFilePortion List*",
  redshift: "Describe* List*",
  route53: "Get* List* TestDNSAnswer",
  s3: "Get* List*",
  sagemaker: "Describe* Get* List* Search",
  scheduler: "Get* List*",
  secretsmanager: "Describe* GetResourcePolicy GetSecretValue List*",
  ses: "Describe* Get* List*",
  sns: "Get* List*",
  sqs: "GetQueue* List*",
  ssm: "Describe* GetDocument GetInventory* GetParameter* GetMaintenance* List*",
  states: "Describe* GetExecutionHistory List*",
  sts: "DecodeAuthorizationMessage GetAccessKeyInfo GetCallerIdentity",
  tag: "Describe* Get*",
  timestream: "Describe* List* Select*",
  xray: "BatchGet* Get* List*",
} as const satisfies Record<AwsService, string>;

/** With all of these a sandbox could make itself credentials that outlive it and that nothing here bounds. */
const NEVER_IN_FULL: readonly string[] = ["iam", "organizations", "sts"];

/**
 * The policy that a session is held to besides its role's own. A role that is named by its ARN was made for this, so it
 * gets the services in full. `until` ends what is allowed before STS would. Raises VALIDATION_ERROR.
 */
export function sessionPolicy({ role, services }: AwsPermissions, until?: Date): string {
  const isReadOnly = role === "readonly";
  const statement: Statement = {
    Effect: "Allow",
    Action: [...new Set(services)].sort().flatMap((service) => actionsOf(service, isReadOnly)),
    Resource: "*",
    ...(until === undefined
      ? {}
      : {
          Condition: {
            DateLessThan: { "aws:CurrentTime": until.toISOString().replace(/\.\d{3}/, "") },
          },
        }),
  };
  const policy = JSON.stringify({ Version: "2012-10-17", Statement: [statement] });
  if (policy.length <= MAX_POLICY_CHARS) return policy;
  throw new AidoError(
    "VALIDATION_ERROR",
    `The policy for ${services.length} services has ${policy.length} characters, and STS takes ${MAX_POLICY_CHARS}`,
    {
      hint: "Name fewer services in permissions.aws.services.",
      details: { field: "permissions.aws.services" },
    },
  );
}

function actionsOf(service: string, isReadOnly: boolean): readonly string[] {
  if (!isReadOnly && !NEVER_IN_FULL.includes(service)) return [`${service}:*`];
  const verbs = READ_ACTIONS[service as AwsService];
  if (isReadOnly) return verbs.split(" ").map((verb) => `${service}:${verb}`);
  throw new AidoError("VALIDATION_ERROR", `${service} is given with the role readonly alone`, {
    hint: `With more, a sandbox could make credentials that outlive it. Leave ${service} out, or write role: readonly.`,
    details: { field: "permissions.aws.services" },
  });
}
