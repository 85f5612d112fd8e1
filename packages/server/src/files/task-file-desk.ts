import type { Readable } from 'node:stream'
import { parseDeliveryId, taskId as itemId } from '@impresario/core'
import type { Job, Storage } from '@impresario/core'
import type { JobFiles, PutOptions } from '@impresario/files'
import { ImpresarioError, mustBeFileName } from '@impresario/protocol'
import type { FileRef } from '@impresario/protocol'
import { sameSecret } from '../runtime/secret.ts'
import type { FileService } from './file-service.ts'

export interface TaskFileDeskOptions {
  readonly service: FileService
  readonly storage: Storage
  readonly readJob: (jobId: string) => Promise<Job | undefined>
}

/** A worker by its id. Those of this process have none: their leases end with it. */
type Holder = string | undefined

interface FileOfJob {
  readonly files: JobFiles
  readonly file: { readonly jobId: string; readonly name: string }
}

/** Where workers come for files: whoever has a task may use the files of its job, and read those of its client's other jobs. */
export class TaskFileDesk {
  readonly #options: TaskFileDeskOptions

  constructor(options: TaskFileDeskOptions) {
    this.#options = options
  }

  async list(workerId: Holder, taskId: string, prefix: string): Promise<readonly FileRef[]> {
    const { files } = this.#options.service
    const jobId = await this.#jobOf(workerId, taskId)
    const found: FileRef[] = []
    let after: string | undefined
    do {
      const page = await files.list(jobId, prefix, { after })
      found.push(...page.files.map((file) => files.ref(jobId, file)))
      after = page.next
    } while (after !== undefined)
    return found
  }

  /** By its name within the job, or by its address. */
  async find(workerId: Holder, taskId: string, given: string): Promise<FileOfJob> {
    const { files } = this.#options.service
    const jobId = await this.#jobOf(workerId, taskId)
    const file = given.startsWith('s3://') ? files.parseUri(given) : { jobId, name: given }
    if (file === undefined) {
      const message = `"name" is no file of this server: its addresses begin with s3://${files.store.bucket}/jobs/.`
      throw new ImpresarioError('INVALID_REQUEST', message)
    }
    mustBeFileName('name', file.name)
    if (file.jobId === jobId || (await this.#isOfSameClient(jobId, file.jobId))) return { files, file }
    throw new ImpresarioError('FILE_NOT_FOUND', `There is no file "${given}".`)
  }

  async read(workerId: Holder, taskId: string, given: string): Promise<Readable> {
    const { files, file } = await this.find(workerId, taskId, given)
    const content = await files.get(file.jobId, file.name)
    if (content === undefined) throw new ImpresarioError('FILE_NOT_FOUND', `There is no file "${given}".`)
    return content.body
  }

  async write(
    workerId: Holder,
    taskId: string,
    name: string,
    body: AsyncIterable<Uint8Array>,
    options: PutOptions,
  ): Promise<FileRef> {
    const { files } = this.#options.service
    const jobId = await this.#jobOf(workerId, taskId)
    return files.ref(jobId, await files.put(jobId, name, body, options))
  }

  async #jobOf(workerId: Holder, taskId: string): Promise<string> {
    const ref = parseDeliveryId(taskId)
    const [item] =
      ref === undefined ? [] : await this.#options.storage.peek('tasks', [itemId(ref.jobId, ref.visit, ref.branch)])
    const lease = item?.lease
    const isHeld = ref !== undefined && lease !== undefined && sameSecret(String(lease.token), String(ref.token))
    if (isHeld && lease.holder === workerId) return ref.jobId
    throw new ImpresarioError('FILE_NOT_FOUND', 'The task is not, or no longer, in the hands of the caller.')
  }

  async #isOfSameClient(one: string, other: string): Promise<boolean> {
    const [first, second] = await Promise.all([one, other].map(async (jobId) => this.#options.readJob(jobId)))
    return first !== undefined && second !== undefined && first.client.id === second.client.id
  }
}
