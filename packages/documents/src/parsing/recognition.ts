import { spawn } from 'node:child_process'
import type { ByteSource } from './byte-source.ts'
import { familyOf } from './kind.ts'
import type { OcrSettings } from './ocr.ts'
import { UnreadableError } from './parsed.ts'
import type { Parsed, ParseLimits } from './parsed.ts'
import { TextSink } from './text-sink.ts'

/** Pictures are whole in memory while they are handed over. */
const PICTURE_BYTES_MAX = 134_217_728

/**
 * Reads the text of a picture, or of the pictures on the pages of a PDF, with the program of the system. It runs in a process of its
 * own, with bounds on its time and memory that hold even if this process is killed.
 */
export async function recogniseDocument(
  source: ByteSource,
  limits: ParseLimits,
  settings: OcrSettings,
): Promise<Parsed> {
  const sink = new TextSink(limits)
  const deadline = performance.now() + settings.timeoutMs
  const isPdf = familyOf(source) === 'pdf'
  const picture = async (bytes: Uint8Array): Promise<void> => {
    sink.add(tidied(await recognise(bytes, settings, deadline)))
    sink.break()
  }
  if (isPdf) {
    const { picturesOf } = await import('./formats/pdf-pictures.ts')
    for await (const bytes of picturesOf(source, settings.pagesMax)) {
      if (sink.isFull) break
      await picture(bytes)
    }
  } else {
    if (source.size > PICTURE_BYTES_MAX) throw new UnreadableError('TOO_LARGE', 'the picture has too many bytes.')
    await picture(source.read(0, source.size))
  }
  return { kind: isPdf ? 'pdf' : 'image', title: '', text: sink.text(), isTruncated: sink.isTruncated }
}

/** A hyphen at the end of a line parts a word. */
function tidied(text: string): string {
  return text.replaceAll(/(?<=\p{Ll})[-\u2010]\n(?=\p{Ll})/gu, '').normalize('NFKC')
}

/** A few megabytes: no picture of a page has more text. */
const OUTPUT_BYTES_MAX = 8_388_608

/**
 * The limits are set by the shell, so that the program has them whatever becomes of this process: of memory in kilobytes, of CPU in
 * seconds.
 */
const LIMITED = 'ulimit -v "$1"; ulimit -t "$2"; exec "$3" stdin stdout -l "$4"'

function recognise(bytes: Uint8Array, settings: OcrSettings, deadline: number): Promise<string> {
  const leftMs = Math.max(1, deadline - performance.now())
  const seconds = Math.ceil(settings.timeoutMs / 1_000)
  const kilobytes = Math.ceil(settings.memoryBytes / 1_024)
  const args = ['-c', LIMITED, 'sh', String(kilobytes), String(seconds), settings.program, settings.languages]
  const child = spawn('/bin/sh', args, {
    // One thread: others would take the cores of everything else, and their stacks count for the limit.
    env: { OMP_THREAD_LIMIT: '1' },
    stdio: ['pipe', 'pipe', 'ignore'],
  })
  return new Promise((resolve, reject) => {
    const pieces: Buffer[] = []
    let size = 0
    let isLate = false
    const timer = setTimeout(() => {
      isLate = true
      child.kill('SIGKILL')
    }, leftMs)
    child.stdout.on('data', (piece: Buffer) => {
      size += piece.length
      if (size <= OUTPUT_BYTES_MAX) pieces.push(piece)
    })
    // A program that ends before it has read everything is judged by its exit.
    child.stdin.on('error', () => undefined)
    child.on('error', () => {
      clearTimeout(timer)
      reject(new UnreadableError('UNSUPPORTED', 'the program that recognises text cannot be started.'))
    })
    child.on('close', (code) => {
      clearTimeout(timer)
      if (code === 0) resolve(Buffer.concat(pieces).toString('utf8'))
      else reject(failureOf(isLate, seconds))
    })
    child.stdin.end(bytes)
  })
}

function failureOf(isLate: boolean, seconds: number): UnreadableError {
  return isLate
    ? new UnreadableError('TOO_LARGE', `its text was not recognised within ${seconds} s (ocr.timeout).`)
    : new UnreadableError('BROKEN', 'its picture cannot be read.')
}
