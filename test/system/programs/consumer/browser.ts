// For a page in a browser: no types of Node, and only the type of the blueprint.
import { createClient } from 'impresario/client'
import type { hello } from './blueprints/hello.ts'

export async function greet(url: string, token: string): Promise<unknown> {
  const job = await createClient({ url, token }).start({ name: 'hello' } satisfies Pick<typeof hello, 'name'>, {
    name: 'Ada',
  })
  return job.result()
}
