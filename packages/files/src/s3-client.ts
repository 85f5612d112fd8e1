import type * as S3Sdk from '@aws-sdk/client-s3'
import type * as Presigner from '@aws-sdk/s3-request-presigner'
import { LIMITS, missingPackage } from '@impresario/protocol'
import type { S3Options } from './s3-options.ts'

type S3Module = typeof S3Sdk
type S3Client = InstanceType<S3Module['S3Client']>

export interface S3Connection {
  readonly module: S3Module
  readonly client: S3Client
}

/** The SDK takes a fifth of a second and 20 MB to load, and is an optional package: only who uses S3 loads it. */
export async function connectS3(options: S3Options): Promise<S3Connection> {
  const module = await load(async () => import('@aws-sdk/client-s3'))
  const { endpoint, region, accessKey, secretKey } = options
  const client = new module.S3Client({
    region,
    ...(endpoint === undefined ? {} : { endpoint, forcePathStyle: true }),
    ...(accessKey === undefined || secretKey === undefined
      ? {}
      : { credentials: { accessKeyId: accessKey, secretAccessKey: secretKey } }),
    // Stores other than Amazon's refuse the checksums that newer versions of the SDK add (aws-sdk-js-v3#6810). Parts are sent
    // with Content-MD5, which all of them check.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    // Parts are in memory already. Waiting for leave to send them costs a round trip, and confuses some stores.
    expectContinueHeader: false,
    maxAttempts: 3,
    requestHandler: {
      connectionTimeout: 5_000,
      // Without a byte in either direction, not in all.
      socketTimeout: LIMITS.fileStallMs,
      httpAgent: { maxSockets: options.concurrencyMax, keepAlive: true },
      httpsAgent: { maxSockets: options.concurrencyMax, keepAlive: true },
    },
  })
  return { module, client }
}

export async function loadPresigner(): Promise<typeof Presigner> {
  return load(async () => import('@aws-sdk/s3-request-presigner'))
}

/** Only their users install them. */
const NEEDS = { purpose: 'S3 as store of files', packages: ['@aws-sdk/client-s3', '@aws-sdk/s3-request-presigner'] }

async function load<T>(importing: () => Promise<T>): Promise<T> {
  try {
    return await importing()
  } catch (error) {
    throw missingPackage(error, NEEDS) ?? error
  }
}
