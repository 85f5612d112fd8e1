import type { FileStore } from './file-store.ts'
import { Gate } from './gate.ts'
import { LocalStore } from './local-store.ts'
import { connectS3 } from './s3-client.ts'
import type { S3Options } from './s3-options.ts'
import { S3Store } from './s3-store.ts'

export interface StoreOptions {
  /** The most operations at a time: reads and writes until their last byte, and everything else. */
  readonly concurrencyMax: number
  readonly bucket: string
  /** Without it: files in a directory. */
  readonly s3?: Omit<S3Options, 'bucket' | 'concurrencyMax'> | undefined
  readonly directory: string
}

export async function openStore({ concurrencyMax, bucket, s3, directory }: StoreOptions): Promise<FileStore> {
  const gate = new Gate(concurrencyMax, 'operations on files')
  if (s3 === undefined) return new LocalStore({ directory, bucket, gate })
  return new S3Store({ connection: await connectS3({ ...s3, bucket, concurrencyMax }), bucket, gate })
}
