import { spawn } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { parseExact, stringifyExact } from '@impresario/client'
import { dataObject } from './arguments.ts'
import { Failure, usage } from './failure.ts'

type Data = ReturnType<typeof dataObject>

interface Editable {
  readonly initial_data: Data
  readonly state_history: Data
}

/** Lets the person change data in their editor. `undefined` when they left them as they were. */
export async function editJson(before: Editable): Promise<Editable | undefined> {
  const { VISUAL = '', EDITOR = '' } = process.env
  const editor = VISUAL === '' ? EDITOR : VISUAL
  if (editor === '') {
    throw usage(
      'It is not said what to change.',
      'Give --data or --history, or set EDITOR to change both in an editor.',
    )
  }
  const folder = await mkdtemp(join(tmpdir(), 'impresario-edit-'))
  const file = join(folder, 'job.json')
  try {
    await writeFile(file, `${stringifyExact(before, 2)}\n`, { mode: 0o600 })
    await runEditor(editor, file)
    const after = readEdited(await readFile(file, 'utf8'))
    return isDeepStrictEqual(after, before) ? undefined : after
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** As a shell would, because people set it with options: `code --wait`. The file is an argument, never part of the text. */
async function runEditor(editor: string, file: string): Promise<void> {
  const isWindows = process.platform === 'win32'
  const [program, args] = isWindows ? [`${editor} "${file}"`, []] : ['sh', ['-c', `${editor} "$1"`, 'sh', file]]
  const child = spawn(program, args, { stdio: 'inherit', shell: isWindows })
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', resolve)
  })
  if (code !== 0) throw new Failure('EDITOR_FAILED', `The editor (${editor}) ended with ${code}: nothing was changed.`)
}

function readEdited(text: string): Editable {
  try {
    const { initial_data: initial, state_history: history, ...more } = dataObject(parseExact(text))
    const [unknown] = Object.keys(more)
    if (unknown !== undefined) throw new TypeError(`"${unknown}" does not belong there`)
    return { initial_data: dataObject(initial), state_history: dataObject(history) }
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw usage(`What came out of the editor is not JSON with "initial_data" and "state_history": ${reason}`)
  }
}
