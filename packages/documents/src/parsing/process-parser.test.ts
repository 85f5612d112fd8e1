import { execFileSync } from 'node:child_process'
import { symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { inflateRawSync } from 'node:zlib'
import { expect, onTestFinished, test } from 'vitest'
import { newDirectory } from '../engine/documents.fixture.ts'
import { docx, pdf, TEXT } from './files.fixture.ts'
import { ProcessParser } from './process-parser.ts'
import type { ProcessParserOptions } from './process-parser.ts'
import { zipOf } from './zip.fixture.ts'

const OPTIONS: ProcessParserOptions = {
  processesMax: 1,
  timeoutMs: 60_000,
  // More than in production: from its sources the process has a loader beside it.
  memoryBytes: 600_000_000,
  limits: { textCharsMax: 2_000_000, unpackedBytesMax: 2_000_000_000 },
}

function open(options: Partial<ProcessParserOptions> = {}): ProcessParser {
  const parser = new ProcessParser({ ...OPTIONS, ...options })
  onTestFinished(() => parser.close())
  return parser
}

async function file(name: string, content: string | Uint8Array): Promise<string> {
  const path = join(await newDirectory('files'), name)
  await writeFile(path, content)
  return path
}

test('[L-02] a file is read in a process of its own, with its terms and its fingerprint', async () => {
  const parser = open()
  const path = await file('Отчёт.docx', docx())
  const { kind, packedText, terms, textChars } = await parser.parseDocument(path)
  expect(kind).toBe('docx')
  expect(inflateRawSync(packedText).toString()).toContain('Ёлочные украшения')
  expect(terms.body.split(' ')).toContain('аренд')
  expect(terms.name).toContain('отчет')
  expect(textChars).toBeGreaterThan(TEXT.length)
  expect((await parser.fingerprint(path)).hash).toMatch(/^[0-9a-f]{64}$/)
  await expect(parser.check()).resolves.toBeUndefined()
})

test('[L-02] a file that takes too long fails alone, and the next one is read', async () => {
  const parser = open({ timeoutMs: 2_000 })
  // Unpacks to a gigabyte of spaces between tags: nothing is kept, and it takes longer than two seconds.
  const spaces = Buffer.alloc(400_000_000, '<a> </a>')
  const slow = await file('slow.docx', zipOf([{ name: 'word/document.xml', content: spaces }]))
  const quick = await file('quick.txt', 'быстро')
  const [failed, read] = await Promise.allSettled([parser.parseDocument(slow), parser.parseDocument(quick)])
  expect(failed).toMatchObject({
    status: 'rejected',
    reason: { code: 'TIMEOUT', message: 'The file took longer than 2 s to read.' },
  })
  expect(read.status).toBe('fulfilled')
})

test.skipIf(process.platform !== 'linux')('[L-02] a file that takes too much memory fails alone', async () => {
  const parser = open({ memoryBytes: 20_000_000 })
  const path = await file('a.pdf', pdf())
  await expect(parser.parseDocument(path)).rejects.toThrow(/memory to read|made the parser crash/)
})

test('[L-02] a file that crashes its process fails alone, and the next one is read', async () => {
  const parser = open()
  await parser.check()
  const spaces = Buffer.alloc(200_000_000, '<a> </a>')
  const path = await file('crash.docx', zipOf([{ name: 'word/document.xml', content: spaces }]))
  const crashed = parser.parseDocument(path)
  const settled = crashed.catch((error: unknown) => error)
  execFileSync('pkill', ['-SEGV', '-P', String(process.pid), '-f', 'parser-main'])
  expect(await settled).toMatchObject({ code: 'CRASHED' })
  await expect(parser.parseDocument(await file('next.txt', 'дальше'))).resolves.toMatchObject({ kind: 'txt' })
})

test('[L-02] while one file takes long, others are read in another process', async () => {
  const parser = open({ processesMax: 2, timeoutMs: 20_000 })
  const spaces = Buffer.alloc(400_000_000, '<a> </a>')
  const slow = await file('slow.docx', zipOf([{ name: 'word/document.xml', content: spaces }]))
  let isSlowDone = false
  const first = parser.parseDocument(slow).then(
    () => (isSlowDone = true),
    () => (isSlowDone = true),
  )
  await expect(parser.parseDocument(await file('quick.txt', 'быстро'))).resolves.toMatchObject({ kind: 'txt' })
  expect(isSlowDone).toBe(false)
  await parser.close()
  await first
})

test('[L-02] errors name no path', async () => {
  const parser = open()
  await expect(parser.parseDocument('/nowhere/secret.txt')).rejects.toMatchObject({
    code: 'GONE',
    message: 'The file is gone.',
  })
  const folder = await newDirectory('files')
  await expect(parser.parseDocument(join(folder, 'x'.repeat(300)))).rejects.toThrow(
    /^The file cannot be read \(ENAMETOOLONG\)\.$/,
  )
})

test('[L-02] what is no regular file any more when it is read is gone: a link, a pipe, a folder', async () => {
  const parser = open()
  const folder = await newDirectory('files')
  await symlink('/etc/passwd', join(folder, 'link.txt'))
  execFileSync('mkfifo', [join(folder, 'pipe.txt')])
  for (const path of [join(folder, 'link.txt'), join(folder, 'pipe.txt'), folder]) {
    await expect(parser.fingerprint(path)).rejects.toMatchObject({ code: 'GONE' })
    await expect(parser.parseDocument(path)).rejects.toMatchObject({ code: 'GONE' })
  }
})
