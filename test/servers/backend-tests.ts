import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Where tests may request a storage without naming one. */
const PLACES = [
  'packages/automations/src',
  'packages/engine/src',
  'packages/server/src',
  'packages/webhooks/src',
  'test',
]

/**
 * Exceptions that need not run on each storage: tests about several at once, and tests that do not depend on its
 * behaviour.
 */
const LEFT_OUT = [
  'packages/server/src/cluster/',
  'packages/server/src/transfer/',
  'packages/server/src/client-api/api-document.test.ts',
  'packages/server/src/orchestrator/blueprint-loader.test.ts',
  'packages/server/src/http/tls.test.ts',
  'packages/server/src/mcp/outside-tools.test.ts',
]

/**
 * The modules that provide a storage. A test that imports one of these gets the storage of the project that it runs in.
 */
const DOORS = [
  'newStorageUrl',
  'newDurableStorageUrl',
  'testStorage',
  'startTestServer',
  'startTenantServer',
  'Stage',
  'Bench',
  'Office',
]

const ASKS = new RegExp(`^import \\{[^}]*\\b(?:${DOORS.join('|')})\\b[^}]*\\} from '\\.`, 'm')

/** The tests that request a storage: they must pass on every storage, so they run on each. */
export function backendTests(root: string): readonly string[] {
  return PLACES.flatMap((place) => testFiles(root, place))
    .filter((file) => !LEFT_OUT.some((one) => file.startsWith(one)))
    .filter((file) => ASKS.test(readFileSync(join(root, file), 'utf8')))
}

/** Every test there, except those of real processes, which choose their own storage. */
function testFiles(root: string, place: string): readonly string[] {
  const entries = readdirSync(join(root, place), { withFileTypes: true, recursive: true })
  return entries
    .filter((entry) => entry.isFile() && entry.name.endsWith('.test.ts'))
    .map((entry) => join(entry.parentPath, entry.name).slice(root.length + 1))
    .filter((file) => !file.startsWith('test/system/'))
    .sort()
}
