import { execFileSync } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ensure } from '../../../../test/system/debian-packages.ts'
import { newDirectory } from '../engine/documents.fixture.ts'
import { tokensOf } from '../text/tokens.ts'
import { BufferSource } from './byte-source.ts'
import { docx, openDocument, PARAGRAPHS, pdf, rtf } from './files.fixture.ts'
import { readDocument } from './formats.ts'

/** Programs that others trust, and files of some size for them. */
const missing = ensure(['poppler-utils', 'docx2txt', 'odt2txt', 'unrtf', 'catdoc'])
const LONG = Array.from({ length: 60 }, (_, index) => `${index}. ${PARAGRAPHS[index % PARAGRAPHS.length]}`)

const CASES: readonly (readonly [program: string, args: readonly string[], name: string, bytes: Buffer])[] = [
  // oxlint-disable-next-line unicorn/text-encoding-identifier-case -- its own name for it
  ['pdftotext', ['-enc', 'UTF-8', 'FILE', '-'], 'a.pdf', pdf(LONG)],
  ['docx2txt', ['FILE', '-'], 'a.docx', docx(LONG)],
  ['odt2txt', ['--encoding=utf-8', 'FILE'], 'a.odt', openDocument('text', LONG)],
  ['unrtf', ['--text', 'FILE'], 'a.rtf', rtf('unicode', LONG)],
  ['catdoc', ['-d', 'utf8', '-w', 'FILE'], 'b.rtf', rtf('cp1251', LONG)],
]

function words(text: string): readonly string[] {
  return [...tokensOf(text)].map(({ term }) => term)
}

test.skipIf(missing !== undefined).for(CASES)(
  '[L-02] %s reads hardly a word that we do not: 97 in 100',
  async ([program, args, name, bytes]) => {
    const directory = await newDirectory('recall')
    const path = join(directory, name)
    await writeFile(path, bytes)
    const command = args.map((arg) => (arg === 'FILE' ? path : arg))
    // Some of them write the pictures of a document where they are started.
    const theirs = execFileSync(program, command, {
      cwd: directory,
      env: { ...process.env, LC_ALL: 'C.UTF-8' },
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    const { text } = await readDocument(new BufferSource(bytes), name, {
      textCharsMax: 1_000_000,
      unpackedBytesMax: 10_000_000,
    })
    const left = new Map<string, number>()
    for (const word of words(text)) left.set(word, (left.get(word) ?? 0) + 1)
    // unrtf and its like say a few words about themselves first.
    const wanted = words(theirs.toString('utf8').replaceAll(/^###.*$/gm, ''))
    const found = wanted.filter((word) => {
      const count = left.get(word) ?? 0
      left.set(word, count - 1)
      return count > 0
    })
    // They have read it too, or there would be nothing to compare with.
    expect(wanted.length).toBeGreaterThan(300)
    expect(found.length / wanted.length).toBeGreaterThanOrEqual(0.97)
  },
)
