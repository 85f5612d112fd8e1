import type { ConfigKey } from './config-keys.ts'

/** Settings of files. */
export interface FileSettings {
  readonly filesDir: string
  readonly taskFilesDir: string
  readonly s3EndpointUrl: string
  readonly s3AccessKey: string
  readonly s3SecretKey: string
  readonly s3Region: string
  readonly s3DefaultBucket: string
  readonly s3MaxConcurrency: number
  readonly s3AutoCleanup: boolean
  readonly fileBytesMax: number
  readonly jobFilesMax: number
  readonly jobFilesBytesMax: number
  readonly clientFilesMax: number
  readonly clientFilesBytesMax: number
  readonly filesSweepSeconds: number
  readonly offloadBytes: number
}

const GIB = 1_073_741_824

export const CLIENT_FILES_CEILING = 1_000_000_000
export const CLIENT_FILES_BYTES_CEILING = 5_000_000 * GIB

export const FILE_KEYS: Readonly<Record<keyof FileSettings, ConfigKey>> = {
  filesDir: {
    names: ['FILES_DIR'],
    type: 'path',
    default: '',
    description:
      'Directory for files of jobs, unless S3_ENDPOINT_URL is set. Empty: beside the data of STORAGE_URL=file:, or a temporary directory with memory:. With Redis or PostgreSQL there is no default: name a directory that all instances share, or use S3.',
  },
  taskFilesDir: {
    names: ['TASK_FILES_DIR'],
    type: 'path',
    default: '',
    description: 'Directory for local copies of files that handlers download. Empty: a temporary directory.',
  },
  s3EndpointUrl: {
    names: ['S3_ENDPOINT_URL'],
    type: 'text',
    check: endpointProblem,
    default: '',
    description:
      'Address of an S3-compatible store for files, such as https://s3.eu-central-1.amazonaws.com or http://minio:9000. Empty: files are kept in FILES_DIR. Needs the packages @aws-sdk/client-s3 and @aws-sdk/s3-request-presigner.',
  },
  s3AccessKey: {
    names: ['S3_ACCESS_KEY'],
    type: 'secret',
    default: '',
    description:
      'Access key of the store. Empty: the default credential chain of AWS (environment, profile, role of the machine).',
  },
  s3SecretKey: { names: ['S3_SECRET_KEY'], type: 'secret', default: '', description: 'Secret key of the store.' },
  s3Region: {
    names: ['S3_REGION'],
    type: 'text',
    check: regionProblem,
    default: 'us-east-1',
    description: 'Region of the store.',
  },
  s3DefaultBucket: {
    names: ['S3_DEFAULT_BUCKET'],
    type: 'text',
    check: bucketProblem,
    default: 'impresario-files',
    description:
      'Bucket for the files of jobs. It must exist. Addresses of files begin with s3:// and this name, even if the files are kept in a directory.',
  },
  s3MaxConcurrency: {
    names: ['S3_MAX_CONCURRENCY'],
    type: 'integer',
    min: 1,
    max: 10_000,
    default: 100,
    description:
      'Maximum number of concurrent file operations, in a directory or in S3. Further operations wait, and are refused with 503 after 30 seconds.',
  },
  s3AutoCleanup: {
    names: ['S3_AUTO_CLEANUP', 'FILES_AUTO_CLEANUP'],
    type: 'switch',
    default: true,
    description:
      'Remove the files of a job when its record is removed (JOB_RETENTION_DAYS). false: files are never removed.',
  },
  fileBytesMax: {
    names: ['FILE_BYTES_MAX'],
    type: 'integer',
    min: 1,
    max: 5_000 * GIB,
    default: 10 * GIB,
    description: 'Maximum size of a file, in bytes.',
  },
  jobFilesMax: {
    names: ['JOB_FILES_MAX'],
    type: 'integer',
    min: 1,
    max: 100_000,
    default: 1_000,
    description: 'Maximum number of files of one job.',
  },
  jobFilesBytesMax: {
    names: ['JOB_FILES_BYTES_MAX'],
    type: 'integer',
    min: 1,
    max: 5_000 * GIB,
    default: 50 * GIB,
    description: 'Maximum total size of the files of one job, in bytes.',
  },
  clientFilesMax: {
    names: ['CLIENT_FILES_MAX'],
    type: 'integer',
    min: 0,
    max: CLIENT_FILES_CEILING,
    default: 0,
    description:
      'Maximum number of files of all jobs of one client together. 0: no limit. `files_max` in the table of a client (CLIENTS_CONFIG_PATH) overrides it.',
  },
  clientFilesBytesMax: {
    names: ['CLIENT_FILES_BYTES_MAX'],
    type: 'integer',
    min: 0,
    max: CLIENT_FILES_BYTES_CEILING,
    default: 0,
    description:
      'Maximum total size of the files of all jobs of one client, in bytes. 0: no limit. `files_bytes_max` in the table of a client overrides it.',
  },
  offloadBytes: {
    names: ['OFFLOAD_BYTES'],
    type: 'integer',
    min: 1_024,
    max: GIB,
    default: 262_144,
    description:
      'Values of jobs above this size (initial data, params, results, values of the state history) are stored as files instead of in the record. This is transparent to handlers, workers and clients.',
  },
  filesSweepSeconds: {
    names: ['FILES_SWEEP_SECONDS'],
    type: 'seconds',
    min: 1,
    max: 604_800,
    default: 3_600,
    description: 'How often files of removed jobs and remains of failed uploads are removed.',
  },
}

function endpointProblem(text: string): string | undefined {
  if (text === '') return undefined
  const problem = 'must be an address that begins with http:// or https://, without a user and a path.'
  try {
    const { protocol, username, password, pathname, search, hash } = new URL(text)
    const isPlain = username === '' && password === '' && pathname === '/' && search === '' && hash === ''
    return /^https?:$/.test(protocol) && isPlain ? undefined : problem
  } catch {
    return problem
  }
}

function regionProblem(text: string): string | undefined {
  if (/^[a-z\d](?:[a-z\d-]{0,62})$/i.test(text)) return undefined
  return `is ${JSON.stringify(text)}. It must be the name of a region, such as eu-central-1.`
}

function bucketProblem(text: string): string | undefined {
  if (/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/.test(text) && !text.includes('..')) return undefined
  return 'must be the name of a bucket: 3 to 63 lower-case letters, digits, hyphens and dots.'
}
