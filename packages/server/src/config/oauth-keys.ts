import { ImpresarioError } from '@impresario/protocol'
import type { ConfigKey } from './config-keys.ts'
import { listIn } from './mcp-keys.ts'
import { withoutEndSlashes } from '../runtime/end-slashes.ts'

/** Settings of tokens that others have issued. */
export interface OauthSettings {
  readonly oauthIssuers: string
  readonly oauthAudience: string
  readonly oauthScopePrefix: string
}

export const OAUTH_KEYS: Readonly<Record<keyof OauthSettings, ConfigKey>> = {
  oauthIssuers: {
    names: ['OAUTH_ISSUERS'],
    type: 'text',
    check: issuersProblem,
    default: '',
    description:
      'Issuers whose tokens (JWT) are accepted as bearer tokens of clients, separated by commas, as their tokens name them in ' +
      '`iss`. Their keys are found through their metadata. Empty: none.',
  },
  oauthAudience: {
    names: ['OAUTH_AUDIENCE'],
    type: 'text',
    check: audienceProblem,
    default: '',
    description:
      'What such a token must name in `aud`, one of several separated by commas. Empty: the address of /mcp under PUBLIC_URL.',
  },
  oauthScopePrefix: {
    names: ['OAUTH_SCOPE_PREFIX'],
    type: 'text',
    check: prefixProblem,
    default: '',
    description:
      'What stands before our scopes in such a token, such as `impresario/` for `impresario/jobs:read`. Scopes without it give nothing.',
  },
}

/** What the tokens of other issuers need. `undefined`: none are accepted. */
export interface OauthChoice {
  readonly issuers: readonly string[]
  readonly audiences: readonly string[]
  readonly scopePrefix: string
}

export function oauthChoice(settings: OauthSettings & { readonly publicUrl: string }): OauthChoice | undefined {
  const issuers = listIn(settings.oauthIssuers)
  if (issuers.length === 0) return undefined
  const named = listIn(settings.oauthAudience)
  if (named.length === 0 && settings.publicUrl === '') {
    throw new ImpresarioError(
      'INVALID_CONFIGURATION',
      'OAUTH_ISSUERS needs OAUTH_AUDIENCE or PUBLIC_URL: without an audience, tokens for other services would be accepted.',
    )
  }
  const audiences = named.length > 0 ? named : [`${withoutEndSlashes(settings.publicUrl)}/mcp`]
  return { issuers, audiences, scopePrefix: settings.oauthScopePrefix }
}

function issuersProblem(text: string): string | undefined {
  const wrong = listIn(text).find((one) => !isIssuer(one))
  return wrong === undefined
    ? undefined
    : `has ${JSON.stringify(wrong)}. It must be addresses such as https://login.example.com, without a query.`
}

/** Keys that come over an open line can be replaced on the way. */
export function isSecureAddress(text: string): boolean {
  if (!URL.canParse(text)) return false
  const { protocol, hostname } = new URL(text)
  return protocol === 'https:' || (protocol === 'http:' && /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/.test(hostname))
}

function isIssuer(text: string): boolean {
  return isSecureAddress(text) && !/[?#]/.test(text) && new URL(text).username === ''
}

function audienceProblem(text: string): string | undefined {
  const wrong = listIn(text).find((one) => !/^[!-~]{1,500}$/.test(one))
  return wrong === undefined ? undefined : `has ${JSON.stringify(wrong)}. It must be names without spaces.`
}

function prefixProblem(text: string): string | undefined {
  return text === '' || /^[!#-[\]-~]{1,200}$/.test(text)
    ? undefined
    : `is ${JSON.stringify(text)}. It must be at most 200 characters that can stand in a scope: no spaces, quotes or backslashes.`
}
