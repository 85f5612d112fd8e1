import type { IncomingHttpHeaders } from 'node:http'
import { isIP } from 'node:net'
import { ImpresarioError } from '@impresario/protocol'
import { listIn } from '../config/mcp-keys.ts'

export interface HostRules {
  readonly mcpHosts: string
  readonly publicUrl: string
  readonly corsOrigins: string
}

/**
 * Keeps web pages out. A page can make its own name point at this server (DNS rebinding), and then the browser sends that
 * name; or it calls this server under its right name, and then the browser says where the page is from. Assistants are
 * programs: they come under a name of ours, and without an origin.
 */
export function hostCheck({ mcpHosts, publicUrl, corsOrigins }: HostRules): (headers: IncomingHttpHeaders) => void {
  const names = new Set(listIn(mcpHosts.toLowerCase()).map((name) => name.replace(/:\d+$/, '')))
  if (publicUrl !== '' && URL.canParse(publicUrl)) names.add(new URL(publicUrl).hostname.toLowerCase())
  const origins = new Set(listIn(corsOrigins))
  const isOwn = (name: string): boolean => name === 'localhost' || isAddress(name) || names.has(name)
  return ({ host = '', origin }) => {
    if (!isOwn(nameIn(host))) {
      throw new ImpresarioError(
        'FORBIDDEN',
        `This server is not reached as ${JSON.stringify(host.slice(0, 200))}. Set PUBLIC_URL or MCP_HOSTS to its name.`,
      )
    }
    if (origin === undefined || origins.has('*') || origins.has(origin)) return
    if (URL.canParse(origin) && isSameSite(new URL(origin), host, isOwn)) return
    throw new ImpresarioError(
      'FORBIDDEN',
      'Pages of this origin may not call this server. Add the origin to CORS_ORIGINS if they should.',
    )
  }
}

/** A page of this server itself, or one of the own machine under its local name. */
function isSameSite(origin: URL, host: string, isOwn: (name: string) => boolean): boolean {
  const name = origin.hostname.replaceAll(/^\[|\]$/g, '').toLowerCase()
  return origin.host === host.toLowerCase() || (isOwn(name) && (name === 'localhost' || isLoopback(name)))
}

function isLoopback(name: string): boolean {
  return name === '::1' || /^127(?:\.\d{1,3}){3}$/.test(name)
}

function isAddress(name: string): boolean {
  return isIP(name) !== 0
}

function nameIn(host: string): string {
  const [, bracketed, plain] = /^(?:\[([^\]]+)\]|([^:]*))(?::\d{1,5})?$/.exec(host.toLowerCase()) ?? []
  return bracketed ?? plain ?? ''
}
