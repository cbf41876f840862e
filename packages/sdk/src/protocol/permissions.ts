/** What a sandbox may do outside of itself. */
export interface Permissions {
  aws?: AwsPermissions | undefined;
}

export interface AwsPermissions {
  /** One of AWS_ROLES, for the role that the operator has set for it, or a role's ARN. */
  role: string;
  /** Names of AWS_SERVICES. */
  services: readonly string[];
}

export const AWS_ROLES = ["readonly", "readwrite"] as const;
export type AwsRole = (typeof AWS_ROLES)[number];

export const AWS_ROLE_ARN = /^arn:aws[a-z-]*:iam::\d{12}:role\/[\w+=,.@/-]{1,512}$/;

/** By the names that IAM knows them by. */
export const AWS_SERVICES = [
  "acm",
  "apigateway",
  "appconfig",
  "athena",
  "autoscaling",
  "batch",
  "bedrock",
  "cloudformation",
  "cloudfront",
  "cloudtrail",
  "cloudwatch",
  "codeartifact",
  "codebuild",
  "codecommit",
  "codepipeline",
  "dynamodb",
  "ec2",
  "ecr",
  "ecs",
  "eks",
  "elasticache",
  "elasticfilesystem",
  "elasticloadbalancing",
  "elasticmapreduce",
  "es",
  "events",
  "firehose",
  "glue",
  "iam",
  "kafka",
  "kinesis",
  "kms",
  "lambda",
  "logs",
  "organizations",
  "rds",
  "redshift",
  "route53",
  "s3",
  "sagemaker",
  "scheduler",
  "secretsmanager",
  "ses",
  "sns",
  "sqs",
  "ssm",
  "states",
  "sts",
  "tag",
  "timestream",
  "xray",
] as const;
export type AwsService = (typeof AWS_SERVICES)[number];
