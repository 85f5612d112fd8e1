import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Where tests may ask for a storage without saying which. */
const PLACES = ['packages/engine/src', 'packages/server/src', 'packages/webhooks/src', 'test']

/** Ask for one, and yet need not run on each: those that are about several at once, and those that use none of what it does. */
const LEFT_OUT = [
  'packages/server/src/cluster/',
  'packages/server/src/transfer/',
  'packages/server/src/client-api/api-document.test.ts',
  'packages/server/src/orchestrator/blueprint-loader.test.ts',
  'packages/server/src/http/tls.test.ts',
]

/** What they ask with. Whoever imports one of these gets the storage of the project that the test runs in. */
const DOORS = [
  'newStorageUrl',
  'newDurableStorageUrl',
  'testStorage',
  'startTestServer',
  'startTenantServer',
  'Stage',
  'Bench',
]

const ASKS = new RegExp(`^import \\{[^}]*\\b(?:${DOORS.join('|')})\\b[^}]*\\} from '\\.`, 'm')

/** The tests that ask for a storage: what they say holds on every one, so that they run on each. */
export function backendTests(root: string): readonly string[] {
  return PLACES.flatMap((place) => testFiles(root, place))
    .filter((file) => !LEFT_OUT.some((one) => file.startsWith(one)))
    .filter((file) => ASKS.test(readFileSync(join(root, file), 'utf8')))
}

/** Every test there, those of real processes left out: they choose the storage that they are about. */
function testFiles(root: string, place: string): readonly string[] {
  const entries = readdirSync(join(root, place), { withFileTypes: true, recursive: true })
  return entries
    .filter((entry) => entry.isFile() && entry.name.endsWith('.test.ts'))
    .map((entry) => join(entry.parentPath, entry.name).slice(root.length + 1))
    .filter((file) => !file.startsWith('test/system/'))
    .sort()
}
