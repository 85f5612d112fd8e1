import { createHash, randomBytes } from 'node:crypto'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import fc from 'fast-check'
import { fileNameProblem, LIMITS } from '@impresario/protocol'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { FileStore } from './file-store.ts'
import { JobValues } from './job-values.ts'

export interface StoreOnTest {
  readonly store: FileStore
  /** A second connection to the same files, which lets in this many operations at a time. */
  open(concurrencyMax: number): Promise<FileStore>
  /** Whether lists are in the order of bytes, as in S3. In fauxqs they are in that of some language, and pages in another. */
  readonly isInByteOrder: boolean
  /** How many hostile names are tried. A server in Python takes a minute for a hundred on a busy machine. */
  readonly hostileNames: number
  /** How many unfinished uploads are lying about. */
  leftovers(): Promise<number>
  close(): Promise<void>
}

/** What every store has to do, whatever it is made of. */
export function describeStore(title: string, begin: () => Promise<StoreOnTest>): void {
  // oxlint-disable-next-line vitest/valid-title -- the suite is named by who runs it
  describe(title, () => {
    let subject: StoreOnTest
    let store: FileStore
    beforeAll(async () => {
      subject = await begin()
      ;({ store } = subject)
    })
    afterAll(async () => subject?.close())

    test('[J-01] what was put is what is got, described the same by every call', async () => {
      const content = Buffer.from('Ein Brief\n')
      const put = await store.put('jobs/1/brief.txt', Readable.from([content]))
      expect(put).toMatchObject({ key: 'jobs/1/brief.txt', bytes: 10, sha256: sha256(content) })
      const got = await store.get('jobs/1/brief.txt')
      expect(await bytesOf(got?.body)).toEqual(content)
      const { etag } = put
      expect(etag).not.toBe('')
      expect(got?.file).toMatchObject({ key: put.key, bytes: 10, etag })
      expect(await store.head(put.key)).toMatchObject({ bytes: 10, etag })
      const { files } = await store.list('jobs/1/')
      expect(files).toMatchObject([{ key: put.key, bytes: 10, etag }])
      expect(Math.abs(Date.now() - (files[0]?.modifiedAt ?? 0))).toBeLessThan(600_000)
    })

    test('[J-01] [J-03] values of jobs are kept by their content, checked when they are read, and removed when they are old', async () => {
      const values = new JobValues(store)
      const text = JSON.stringify({ ü: 'x'.repeat(100_000) })
      const ref = await values.put('a/b', text)
      expect(await values.put('a/b', text)).toEqual(ref)
      expect(await values.get('a/b', ref)).toBe(text)
      const jobs: string[] = []
      for await (const jobId of values.jobs()) jobs.push(jobId)
      expect(jobs).toEqual(['a/b'])
      await expect(values.get('a', ref)).rejects.toThrow('A part of job a is missing in the store of files')
      await expect(values.get('a/b', { ...ref, bytes: 5 })).rejects.toThrow('was altered')
      const hourMs = 3_600_000
      expect(await values.deleteOld('a/b', Date.now() - hourMs)).toBe(0)
      expect(await values.deleteOld('a/b', Date.now() + hourMs)).toBe(1)
      await expect(values.get('a/b', ref)).rejects.toThrow('is missing')
    })

    test('[J-01] an empty file is a file', async () => {
      await store.put('empty', Readable.from([]))
      expect(await store.head('empty')).toMatchObject({ bytes: 0 })
      expect(await bytesOf((await store.get('empty'))?.body)).toHaveLength(0)
    })

    test('[J-01] a second put replaces the file and its mark', async () => {
      const first = await store.put('replaced', Readable.from([Buffer.from('one')]))
      const second = await store.put('replaced', Readable.from([Buffer.from('second')]))
      expect(second.etag).not.toBe(first.etag)
      expect(await bytesOf((await store.get('replaced'))?.body)).toEqual(Buffer.from('second'))
    })

    test('[J-01] what is not there is nothing to get and no mistake to delete', async () => {
      expect(await store.get('absent')).toBeUndefined()
      expect(await store.head('absent')).toBeUndefined()
      await store.delete(['absent', 'also/absent'])
      expect(await store.list('absent')).toEqual({ files: [], next: undefined })
    })

    test('[J-02] a file of several parts comes back byte by byte, whole and in ranges', async () => {
      const content = randomBytes(2 * LIMITS.filePartBytes + 12_345)
      await store.put('large', chunks(content, 100_003), { bytes: content.byteLength, sha256: sha256(content) })
      expect(sha256(await bytesOf((await store.get('large'))?.body))).toBe(sha256(content))
      const ranges = [
        [{ start: 0, end: 0 }, 0, 0],
        [
          { start: LIMITS.filePartBytes - 1, end: LIMITS.filePartBytes },
          LIMITS.filePartBytes - 1,
          LIMITS.filePartBytes,
        ],
        [{ start: content.byteLength - 10 }, content.byteLength - 10, content.byteLength - 1],
        [{ start: -5 }, content.byteLength - 5, content.byteLength - 1],
        [{ start: 100, end: 10 ** 12 }, 100, content.byteLength - 1],
      ] as const
      for (const [range, start, end] of ranges) {
        const got = await store.get('large', range)
        expect(got?.range).toEqual({ start, end })
        expect(got?.file.bytes).toBe(content.byteLength)
        expect(Buffer.compare(await bytesOf(got?.body), content.subarray(start, end + 1))).toBe(0)
      }
    })

    test('[J-02] parts of exactly full size make no empty part', async () => {
      const content = randomBytes(2 * LIMITS.filePartBytes)
      await store.put('full-parts', chunks(content, LIMITS.filePartBytes))
      expect(await store.head('full-parts')).toMatchObject({ bytes: content.byteLength })
      await store.put('full-part', chunks(content.subarray(0, LIMITS.filePartBytes), 65_536))
      expect(await store.head('full-part')).toMatchObject({ bytes: LIMITS.filePartBytes })
    })

    test('[J-01] a range behind the end is refused with the size', async () => {
      await store.put('short', Readable.from([Buffer.from('abc')]))
      await expect(store.get('short', { start: 3 })).rejects.toMatchObject({
        code: 'RANGE_NOT_SATISFIABLE',
        details: { bytes: 3 },
      })
      const whole = await store.get('short', { start: -10 })
      expect(whole?.range).toEqual({ start: 0, end: 2 })
      expect(String(await bytesOf(whole?.body))).toBe('abc')
    })

    test('[J-02] an upload that breaks off, is aborted, is too large or is another one leaves nothing', async () => {
      const content = randomBytes(2 * LIMITS.filePartBytes)
      const broken = async function* broken(): AsyncGenerator<Uint8Array> {
        yield content
        await Promise.resolve()
        throw new Error('The connection was cut')
      }
      await expect(store.put('broken', broken())).rejects.toThrow('The connection was cut')
      const abort = new AbortController()
      const aborted = async function* aborted(): AsyncGenerator<Uint8Array> {
        yield content
        await Promise.resolve()
        abort.abort(new Error('Enough'))
        yield content
      }
      await expect(store.put('broken', aborted(), { signal: abort.signal })).rejects.toThrow('Enough')
      const refusals = [
        [{ bytesMax: content.byteLength - 1 }, 'FILE_TOO_LARGE'],
        [{ bytes: 10 ** 9, bytesMax: 10 ** 8 }, 'FILE_TOO_LARGE'],
        [{ bytes: content.byteLength - 1 }, 'FILE_MISMATCH'],
        [{ bytes: content.byteLength + 1 }, 'FILE_MISMATCH'],
        [{ sha256: sha256(Buffer.from('another')) }, 'FILE_MISMATCH'],
      ] as const
      for (const [options, code] of refusals) {
        await expect(store.put('broken', chunks(content, 1_000_000), options)).rejects.toMatchObject({ code })
      }
      expect(await store.head('broken')).toBeUndefined()
      expect((await store.list('broken')).files).toEqual([])
      expect(await subject.leftovers()).toBe(0)
    })

    test('[J-01] lists are in the order of bytes, in pages, and end with their prefix', async () => {
      const plain = ['p/a', 'p/a/b', 'p/a0', 'p/b', 'p/z', 'p/z1', 'p/zz']
      const odd = ['p/B', 'p/a.b', 'p/é', 'p/\u{1F600}', 'p/\uFF5E', 'p/z z', 'p/z%20z']
      const keys = subject.isInByteOrder ? [...plain, ...odd] : plain
      for (const key of [...keys, 'pp/x', 'p']) await store.put(key, Readable.from([Buffer.from(key)]))
      const found: string[] = []
      let after: string | undefined
      do {
        const { files, next } = await store.list('p/', { limit: 3, after })
        expect(files.length).toBeLessThanOrEqual(3)
        found.push(...files.map(({ key }) => key))
        after = next
      } while (after !== undefined)
      expect(found).toEqual(byBytes(keys))
      const withA = byBytes(keys.filter((key) => key.startsWith('p/a')))
      expect((await store.list('p/a')).files.map(({ key }) => key)).toEqual(withA)
    })

    test('[J-03] folders are named once each, however many files they hold', async () => {
      const long = 'x'.repeat(450)
      for (const key of ['f/1/a', 'f/1/b/c', 'f/2/a', `f/${long}/a`, 'f/%2e%2e/a', 'f/plain']) {
        await store.put(key, Readable.from([Buffer.from('x')]))
      }
      const found: string[] = []
      for await (const name of store.folders('f/')) found.push(name)
      expect(found.toSorted()).toEqual(['%2e%2e', '1', '2', long])
    })

    test('[J-01] deleted files are gone from every view, and others stay', async () => {
      for (const key of ['d/1', 'd/1/2', 'd/3']) await store.put(key, Readable.from([Buffer.from('x')]))
      await store.delete(['d/1', 'd/3'])
      expect((await store.list('d/')).files.map(({ key }) => key)).toEqual(['d/1/2'])
      expect(await store.get('d/1')).toBeUndefined()
      expect(await bytesOf((await store.get('d/1/2'))?.body)).toEqual(Buffer.from('x'))
    })

    test('[J-02] no more operations at a time than allowed, and none is lost', async () => {
      const narrow = await subject.open(2)
      let [inside, most] = [0, 0]
      const slow = async function* slow(): AsyncGenerator<Uint8Array> {
        inside += 1
        most = Math.max(most, inside)
        for (let index = 0; index < 5; index += 1) {
          await new Promise((resolve) => setImmediate(resolve))
          yield Buffer.from('x')
        }
        inside -= 1
      }
      await Promise.all(Array.from({ length: 12 }, async (_, index) => narrow.put(`narrow/${index}`, slow())))
      expect(most).toBe(2)
      // A body that is read by nobody holds its place until it is destroyed.
      const first = await narrow.get('narrow/1')
      const second = await narrow.get('narrow/2')
      const third = narrow.head('narrow/3')
      first?.body.destroy()
      expect(await third).toMatchObject({ bytes: 5 })
      second?.body.destroy()
      await narrow.close()
    })

    test('[J-01] hostile names, up to a thousand, escape nowhere: each is refused, or names one file of its own', async () => {
      const seen = new Map<string, string>()
      await fc.assert(
        fc.asyncProperty(hostileName, async (name) => {
          const key = `hostile/${name}`
          if (fileNameProblem(key) !== undefined) {
            const calls = [store.put(key, Readable.from([])), store.get(key), store.head(key), store.delete([key])]
            for (const call of calls) mustBeRefused(await call.catch((error: unknown) => error))
            return
          }
          const content = String(seen.size)
          seen.set(key, content)
          await store.put(key, Readable.from([Buffer.from(content)]))
          expect(String(await bytesOf((await store.get(key))?.body))).toBe(content)
        }),
        { numRuns: subject.hostileNames },
      )
      const listed: string[] = []
      let after: string | undefined
      do {
        const page = await store.list('hostile/', { after })
        listed.push(...page.files.map(({ key }) => key))
        after = page.next
      } while (after !== undefined)
      // Long lists of odd texts say nothing where they differ; the first difference does.
      const expected = byBytes([...seen.keys()])
      const found = byBytes(listed)
      expect(found.find((key, index) => key !== expected[index])).toBeUndefined()
      expect(found).toHaveLength(expected.length)
      // The last writer of each name is the one whose content is there: no two names share a file.
      for (const [key, content] of seen) expect(String(await bytesOf((await store.get(key))?.body))).toBe(content)
    })

    test('[J-01] a store that can be used says so', async () => {
      await expect(store.check()).resolves.toBeUndefined()
    })
  })
}

const piece = fc.constantFrom(
  '..',
  '.',
  '/',
  '//',
  '\\',
  '\0',
  '%2e%2e',
  '%2f',
  '%00',
  '%',
  '..%2f',
  '~',
  '+',
  '.uploads',
  'a',
  'B',
  'CON',
  'nul.txt',
  ' ',
  '  ',
  '-rf',
  '$HOME',
  '`id`',
  '"',
  "'",
  '<',
  '>',
  '&',
  '?',
  '#',
  '*',
  ':',
  '|',
  ';',
  '\u202E',
  '\u200B',
  'é',
  'e\u0301',
  '\u{1F600}',
  '\uD800',
  '\uFFFF',
  '\uFEFF',
  '\n',
  '\r\n',
  '\u007F',
  '\u0085',
  '\u2028',
  '=',
  '@',
  '{}',
  'x'.repeat(254),
  'y'.repeat(300),
  '.'.repeat(260),
  'é'.repeat(200),
  `${'a'.repeat(200)}..`,
)
/** Also what nobody thought of, and what is just as long as it may be. */
const hostileName = fc.oneof(
  { weight: 6, arbitrary: fc.array(piece, { minLength: 1, maxLength: 6 }).map((parts) => parts.join('')) },
  { weight: 3, arbitrary: fc.array(piece, { minLength: 1, maxLength: 6 }).map((parts) => parts.join('/')) },
  { weight: 1, arbitrary: fc.string({ unit: 'binary', minLength: 1, maxLength: 60 }) },
  { weight: 1, arbitrary: fc.integer({ min: 1_000, max: 1_040 }).map((length) => 'k'.repeat(length)) },
)

function mustBeRefused(answer: unknown): void {
  expect(answer).toMatchObject({ code: 'INVALID_REQUEST' })
}

function byBytes(keys: readonly string[]): readonly string[] {
  return keys.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
}

function sha256(content: Uint8Array): string {
  return createHash('sha256').update(content).digest('hex')
}

async function* chunks(content: Buffer, size: number): AsyncGenerator<Uint8Array> {
  for (let offset = 0; offset < content.byteLength; offset += size) {
    yield await Promise.resolve(content.subarray(offset, offset + size))
  }
}

export async function bytesOf(body: Readable | undefined): Promise<Buffer> {
  if (body === undefined) throw new Error('There is no such file')
  return buffer(body)
}
