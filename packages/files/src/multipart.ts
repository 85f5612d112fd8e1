import { createHash } from 'node:crypto'
import type { S3Connection } from './s3-client.ts'

interface ObjectAddress {
  readonly Bucket: string
  readonly Key: string
}

interface Part {
  readonly PartNumber: number
  readonly ETag: string | undefined
}

/**
 * Sends a file in parts: while one is on its way the next is filled, in two buffers that are used again and again. What fits
 * into one part is sent as one request. Whatever goes wrong, the parts that were sent are given up.
 *
 * The class must not be named `MultipartUpload`: TypeScript 7.0 then writes the field of that name in `#complete` as `_a`.
 */
export class PartUpload {
  readonly #connection: S3Connection
  readonly #address: ObjectAddress
  readonly #partBytes: number
  readonly #buffers: Buffer[] = []
  readonly #parts: Part[] = []
  #uploadId: string | undefined
  #sending: Promise<void> = Promise.resolve()

  constructor(connection: S3Connection, address: ObjectAddress, partBytes: number) {
    this.#connection = connection
    this.#address = address
    this.#partBytes = partBytes
  }

  /** Returns the store's mark of the content. */
  async send(body: AsyncIterable<Uint8Array>): Promise<string> {
    try {
      const rest = await this.#sendFullParts(body)
      if (this.#uploadId === undefined) return await this.#sendWhole(rest)
      await this.#sending
      if (rest.byteLength > 0) await this.#sendPart(this.#uploadId, rest, this.#parts.length + 1)
      return await this.#complete(this.#uploadId)
    } catch (error) {
      await this.#abort()
      throw error
    }
  }

  async #sendFullParts(body: AsyncIterable<Uint8Array>): Promise<Buffer> {
    let number = 0
    let filled = 0
    for await (const chunk of body) {
      for (let offset = 0; offset < chunk.byteLength;) {
        // Only when more comes is it known that a full buffer is not the whole file.
        if (filled === this.#partBytes) {
          const full = this.#buffer(number)
          number += 1
          filled = 0
          this.#uploadId ??= await this.#create()
          await this.#sending
          this.#sending = this.#sendPart(this.#uploadId, full, number)
          // Whoever awaits it next sees the failure; until then it is not an unhandled one.
          this.#sending.catch(() => undefined)
        }
        const piece = chunk.subarray(offset, offset + this.#partBytes - filled)
        this.#buffer(number).set(piece, filled)
        offset += piece.byteLength
        filled += piece.byteLength
      }
    }
    return this.#buffer(number).subarray(0, filled)
  }

  #buffer(number: number): Buffer {
    return (this.#buffers[number % 2] ??= Buffer.allocUnsafeSlow(this.#partBytes))
  }

  async #create(): Promise<string> {
    const { module, client } = this.#connection
    const { UploadId } = await client.send(new module.CreateMultipartUploadCommand(this.#address))
    if (UploadId === undefined) throw new Error('The store gave the upload no id')
    return UploadId
  }

  async #sendWhole(body: Buffer): Promise<string> {
    const { module, client } = this.#connection
    const sum = { ContentMD5: md5(body), ContentLength: body.byteLength }
    const { ETag = '' } = await client.send(new module.PutObjectCommand({ ...this.#address, ...sum, Body: body }))
    return ETag
  }

  async #sendPart(UploadId: string, body: Buffer, PartNumber: number): Promise<void> {
    const { module, client } = this.#connection
    const part = { UploadId, PartNumber, ContentMD5: md5(body), ContentLength: body.byteLength, Body: body }
    const { ETag } = await client.send(new module.UploadPartCommand({ ...this.#address, ...part }))
    this.#parts.push({ PartNumber, ETag })
  }

  async #complete(UploadId: string): Promise<string> {
    const { module, client } = this.#connection
    const order = { UploadId, MultipartUpload: { Parts: this.#parts } }
    const { ETag = '' } = await client.send(new module.CompleteMultipartUploadCommand({ ...this.#address, ...order }))
    return ETag
  }

  async #abort(): Promise<void> {
    const { module, client } = this.#connection
    // A part that is still on its way would outlive the end of its upload.
    await this.#sending.catch(() => undefined)
    if (this.#uploadId === undefined) return
    const order = { ...this.#address, UploadId: this.#uploadId }
    // What cannot be given up now is found by the next sweep.
    await client.send(new module.AbortMultipartUploadCommand(order)).catch(() => undefined)
  }
}

function md5(body: Buffer): string {
  return createHash('md5').update(body).digest('base64')
}
