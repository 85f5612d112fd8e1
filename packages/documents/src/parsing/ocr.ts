import { spawnSync } from 'node:child_process'
import { isAbsolute } from 'node:path'

/** How the text of pictures is recognised. */
export interface OcrSettings {
  /** The program, with its whole path. */
  readonly program: string
  /** As the program takes them: `rus+eng`. */
  readonly languages: string
  /** Longest time for one file with all its pages. */
  readonly timeoutMs: number
  /** Largest memory of the program. */
  readonly memoryBytes: number
  readonly pagesMax: number
}

/** Whether pictures and scanned pages are read, or why not. */
export type OcrStatus =
  | { readonly is_on: true; readonly languages: readonly string[] }
  | { readonly is_on: false; readonly reason: string }

export interface OcrConfig {
  readonly enabled: boolean
  readonly program: string
  readonly languages: readonly string[]
  readonly timeout: number
  readonly memory: number
  readonly max_pages: number
}

export interface Ocr {
  readonly status: OcrStatus
  /** Nothing where it is off. */
  readonly settings: OcrSettings | undefined
}

const LIST_MS = 10_000

/** Looks for the program and its languages; `path` instead of the one of this process. Nothing is ever downloaded. */
export function findOcr(config: OcrConfig, path?: string): Ocr {
  if (!config.enabled) return off('It is turned off (ocr.enabled).')
  const program = programAt(config.program, path)
  if (program === undefined) {
    return off(
      `The program ${config.program} is not installed. On Debian: apt install tesseract-ocr tesseract-ocr-rus.`,
    )
  }
  const listed = spawnSync(program, ['--list-langs'], { encoding: 'utf8', timeout: LIST_MS, env: {} })
  if (listed.status !== 0) return off(`${config.program} --list-langs failed.`)
  const there = new Set(`${listed.stdout}\n${listed.stderr}`.split('\n').map((line) => line.trim()))
  const languages = config.languages.filter((language) => there.has(language))
  if (languages.length === 0) {
    return off(`${config.program} has none of the languages ${config.languages.join(', ')} (ocr.languages).`)
  }
  return {
    status: { is_on: true, languages },
    settings: {
      program,
      languages: languages.join('+'),
      timeoutMs: config.timeout,
      memoryBytes: config.memory,
      pagesMax: config.max_pages,
    },
  }
}

function off(reason: string): Ocr {
  return { status: { is_on: false, reason }, settings: undefined }
}

/** Where the shell finds it. */
function programAt(name: string, path: string | undefined): string | undefined {
  const env = path === undefined ? {} : { env: { PATH: path } }
  const found = spawnSync('/bin/sh', ['-c', 'command -v "$0"', name], { encoding: 'utf8', timeout: LIST_MS, ...env })
  const place = found.status === 0 ? found.stdout.trim() : ''
  return isAbsolute(place) ? place : undefined
}
