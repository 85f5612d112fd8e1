import { domainToASCII } from 'node:url'
import { ToolError } from '../tool.ts'

export interface Mailbox {
  readonly name: string
  readonly address: string
}

const ADDRESS_CHARS_MAX = 254
const NAME_CHARS_MAX = 200
const NAMED = /^(?<name>[^<>]*)<(?<address>[^<>]*)>$/
/** Without quotes, comments and routes: what remains is read by every mail server in the same way. */
const LOCAL = /^[\w!#$%&'*+/=?^`{|}~-]+(?:\.[\w!#$%&'*+/=?^`{|}~-]+)*$/
const DOMAIN = /^(?=.{1,253}$)[a-z\d](?:[a-z\d-]*[a-z\d])?(?:\.[a-z\d](?:[a-z\d-]*[a-z\d])?)*$/

/** `ada@example.com`, or `Ada <ada@example.com>`. Refuses whatever could become another header or another receiver. */
export function readAddress(field: string, text: string): Mailbox {
  const trimmed = text.trim()
  if (/[\r\n\0]/.test(text)) throw refusal(field, 'has a line break')
  const { name = '', address = trimmed } = NAMED.exec(trimmed)?.groups ?? {}
  const at = address.lastIndexOf('@')
  const [local, domain] = [address.slice(0, at).trim(), domainToASCII(address.slice(at + 1).trim())]
  if (at < 1 || address.length > ADDRESS_CHARS_MAX || !LOCAL.test(local) || !DOMAIN.test(domain)) {
    throw refusal(field, 'is not an e-mail address such as ada@example.com')
  }
  const shown = name.trim().replace(/^"(?<inner>.*)"$/, '$<inner>')
  if (shown.length > NAME_CHARS_MAX) throw refusal(field, `has a name of more than ${NAME_CHARS_MAX} characters`)
  return { name: shown, address: `${local}@${domain}` }
}

export function recipientsIn(field: string, given: string | readonly string[] | undefined): readonly Mailbox[] {
  return given === undefined ? [] : [given].flat().map((one) => readAddress(field, one))
}

function refusal(field: string, problem: string): ToolError {
  return new ToolError('INVALID_INPUT_ERROR', `"${field}" ${problem}.`)
}
