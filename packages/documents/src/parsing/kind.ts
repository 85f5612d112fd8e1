import { extname } from 'node:path'
import { wideCharset } from '../text/charset.ts'
import type { ByteSource } from './byte-source.ts'

/** The formats that are read. */
const KINDS = [
  'txt', 'md', 'html', 'pdf', 'docx', 'xlsx', 'pptx', 'odt', 'ods', 'odp', 'rtf', 'eml', 'mbox', 'msg', 'csv', 'json', 'xml',
  'epub', 'zip',
] as const // prettier-ignore
export type Kind = (typeof KINDS)[number]

const BY_EXTENSION: Readonly<Record<string, Kind>> = {
  '.txt': 'txt', '.text': 'txt', '.log': 'txt', '.md': 'md', '.markdown': 'md', '.html': 'html', '.htm': 'html',
  '.xhtml': 'html', '.pdf': 'pdf', '.docx': 'docx', '.docm': 'docx', '.dotx': 'docx', '.xlsx': 'xlsx', '.xlsm': 'xlsx',
  '.pptx': 'pptx', '.pptm': 'pptx', '.ppsx': 'pptx', '.odt': 'odt', '.ott': 'odt', '.ods': 'ods', '.odp': 'odp',
  '.rtf': 'rtf', '.eml': 'eml', '.mht': 'eml', '.mhtml': 'eml', '.mbox': 'mbox', '.msg': 'msg', '.csv': 'csv', '.tsv': 'csv', '.json': 'json', '.xml': 'xml',
  '.epub': 'epub', '.zip': 'zip',
} // prettier-ignore

/** Pictures, sound, films, programs: files that a folder of documents may hold and that have no text. */
const NO_DOCUMENTS = new Set(
  `.jpg .jpeg .png .gif .bmp .webp .ico .tif .tiff .heic .svgz .psd .raw .mp3 .wav .flac .ogg .m4a .aac .mp4 .mkv .avi .mov .webm
  .wmv .exe .dll .so .dylib .o .a .class .jar .wasm .pyc .db .sqlite .sqlite3 .iso .img .dmg .7z .rar .gz .bz2 .xz .zst .tar .ttf
  .otf .woff .woff2 .lnk .bin .dat`.split(/\s+/),
)

export function kindByName(name: string): Kind | undefined {
  return BY_EXTENSION[extname(name).toLowerCase()]
}

/** Pictures that can be read where text is recognised. */
const PICTURES = new Set(['.png', '.jpg', '.jpeg', '.tif', '.tiff', '.bmp', '.webp', '.gif'])

export function isPictureName(name: string): boolean {
  return PICTURES.has(extname(name).toLowerCase())
}

/** Whether a file of this name is worth a look: its content decides when the name does not. */
export function mayBeDocument(name: string, readsPictures = false): boolean {
  return !NO_DOCUMENTS.has(extname(name).toLowerCase()) || (readsPictures && isPictureName(name))
}

/** The text of a document of Word. Some services of Microsoft number it. */
export const WORD_MAIN = /^word\/document\d*\.xml$/i

/** A family that is read in one way, told by the first bytes; the name only decides between kinds of text. */
export type Family = 'pdf' | 'zip' | 'rtf' | 'compound' | 'text' | 'binary'

export function familyOf(source: ByteSource): Family {
  const head = source.read(0, 4_096)
  if (head.subarray(0, 1_024).includes('%PDF-')) return 'pdf'
  if (head.length >= 4 && head.readUInt32LE(0) === 0x04_03_4b_50) return 'zip'
  if (head.length >= 22 && head.readUInt32LE(0) === 0x06_05_4b_50) return 'zip'
  if (head.subarray(0, 5).toString('latin1') === String.raw`{\rtf`) return 'rtf'
  if (head.length >= 4 && head.readUInt32LE(0) === 0xe0_11_cf_d0) return 'compound'
  return isBinary(head) ? 'binary' : 'text'
}

/** Control characters that no text has. In UTF-16 every second byte is one. */
function isBinary(head: Buffer): boolean {
  const isMarked = (head[0] === 0xff && head[1] === 0xfe) || (head[0] === 0xfe && head[1] === 0xff)
  const isWide = head.length >= 4 && head.readUInt32BE(0) === 0x00_00_fe_ff
  if (isMarked || isWide || wideCharset(head) !== undefined) return false
  let controls = 0
  for (const byte of head) if (byte < 32 && !TEXT_CONTROLS.has(byte)) controls += 1
  return controls > head.length * 0.02
}

/** Bell, backspace, tab, line feeds, carriage return, and what terminals and DOS put into texts. */
const TEXT_CONTROLS = new Set([7, 8, 9, 10, 11, 12, 13, 26, 27])

const MAIL_HEADER =
  /^(?:Received|Return-Path|Delivered-To|From|To|Subject|Date|MIME-Version|Message-ID|Cc|Reply-To|Sender|Content-[\w-]+|X-[\w-]+):/i

/** Begins every mail in a file of mails. */
export const MBOX_LINE = /^From \S.*\d{2}:\d{2}.*\d{4}/

/** Which kind of text it is, when the name does not say. */
export function textKind(name: string, beginning: string): Kind {
  const byName = kindByName(name)
  if (byName !== undefined && TEXTS.has(byName)) return byName
  const head = beginning.trimStart().slice(0, 2_000)
  if (/^<!doctype\s+html|^<html[\s>]/i.test(head)) return 'html'
  if (head.startsWith('<?xml')) return /<html[\s>]/i.test(head) ? 'html' : 'xml'
  const [first = '', second = ''] = head.split(/\r?\n/)
  if (MBOX_LINE.test(first) && MAIL_HEADER.test(second)) return 'mbox'
  return MAIL_HEADER.test(first) && (MAIL_HEADER.test(second) || /^\s/.test(second)) ? 'eml' : 'txt'
}

const TEXTS: ReadonlySet<Kind> = new Set<Kind>(['txt', 'md', 'html', 'eml', 'mbox', 'csv', 'json', 'xml'])
