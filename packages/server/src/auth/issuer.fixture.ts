import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import type { JWTPayload } from 'jose'

/** An OAuth issuer on this machine, as far as a server that checks its tokens can see it. */
export interface TestIssuer {
  readonly url: string
  /** Requests that it got, by path. */
  readonly asked: string[]
  token(claims: JWTPayload, options?: TokenOptions): Promise<string>
  /** Answers with this from now on, instead of its metadata and keys. */
  breakWith(body: string, status: number): void
  close(): Promise<void>
}

interface TokenOptions {
  /** Signed by a key that is not published. */
  readonly isForged?: boolean
  readonly issuer?: string
  readonly expires?: string | number | null
}

export const AUDIENCE = 'https://impresario.example.com/mcp'

export async function startIssuer(): Promise<TestIssuer> {
  const { publicKey, privateKey } = await generateKeyPair('ES256')
  const forger = (await generateKeyPair('ES256')).privateKey
  const asked: string[] = []
  let broken: { readonly body: string; readonly status: number } | undefined
  const jwk = { ...(await exportJWK(publicKey)), kid: 'one', alg: 'ES256', use: 'sig' }
  const server = createServer((request, response) => {
    const path = request.url ?? ''
    asked.push(path)
    const bodies: Readonly<Record<string, object>> = {
      '/.well-known/openid-configuration': { issuer: url, jwks_uri: `${url}/keys` },
      '/keys': { keys: [jwk] },
    }
    const found = bodies[path]
    const answer = broken ?? { body: JSON.stringify(found ?? {}), status: found === undefined ? 404 : 200 }
    response.writeHead(answer.status, { 'content-type': 'application/json' }).end(answer.body)
  })
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    url,
    asked,
    token: (claims, { isForged = false, issuer = url, expires = '5 minutes' } = {}) => {
      const jwt = new SignJWT(claims).setProtectedHeader({ alg: 'ES256', kid: 'one', typ: 'at+jwt' }).setIssuer(issuer)
      if (claims.aud === undefined) jwt.setAudience(AUDIENCE)
      if (expires !== null) jwt.setExpirationTime(expires)
      return jwt.sign(isForged ? forger : privateKey)
    },
    breakWith: (body, status) => {
      broken = { body, status }
    },
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections()
        server.close(() => resolve())
      }),
  }
}
