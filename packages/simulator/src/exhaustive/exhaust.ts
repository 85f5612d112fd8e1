import { companionPieces, referencePieces } from '../blueprints/repertoire.ts'
import type { Piece } from '../blueprints/stage.ts'
import { SINGLE_FAULTS } from './planned-link.ts'
import type { SingleFault } from './planned-link.ts'
import { runSmallWorld } from './small-world.ts'
import type { SmallWorldOptions, SmallWorldReport } from './small-world.ts'

export interface ExhaustReport {
  readonly name: string
  readonly calls: number
  readonly runs: number
  readonly steps: number
  readonly failures: readonly string[]
}

/** A reference blueprint, and when its client changes its mind, if it does. */
export interface Subject {
  readonly name: string
  readonly piece: Piece
  readonly cancelAfterMs: number | undefined
}

const PIECES = [...referencePieces(), ...companionPieces()]

/** `tour` is cancelled in each of its states, one after the other; the times fall into them without faults. */
const CANCEL_AT_MS = [0, 300, 900, 1_700, 6_000] as const

export function subjects(): readonly Subject[] {
  return referencePieces().flatMap((piece) => {
    const { name } = piece.blueprint
    const plain: Subject = { name, piece, cancelAfterMs: undefined }
    if (name !== 'tour') return [plain]
    return [plain, ...CANCEL_AT_MS.map((ms) => ({ name: `tour, cancelled after ${ms} ms`, piece, cancelAfterMs: ms }))]
  })
}

/** Tries every fault at every call. */
export async function everySingle(subject: Subject): Promise<ExhaustReport> {
  const clean = await runSubject(subject, 'all', new Map())
  const tally = new Exhaust(subject, clean)
  for (let call = 0; call < clean.calls; call += 1) {
    for (const fault of SINGLE_FAULTS) await tally.run('all', new Map([[call, fault]]))
  }
  return tally.report()
}

/** Tries every two faults at every two calls that change something, some later ones than a clean run makes included. */
export async function everyPair(subject: Subject, callsMax = Infinity): Promise<ExhaustReport> {
  const clean = await runSubject(subject, 'effective', new Map())
  const tally = new Exhaust(subject, clean)
  const calls = Math.min(clean.calls, callsMax)
  for (let first = 0; first < calls; first += 1) {
    for (let second = first + 1; second < calls + 4; second += 1) {
      for (const a of SINGLE_FAULTS) {
        for (const b of SINGLE_FAULTS) {
          await tally.run(
            'effective',
            new Map([
              [first, a],
              [second, b],
            ]),
          )
        }
      }
    }
  }
  return tally.report()
}

type Faults = ReadonlyMap<number, SingleFault>

function runSubject(
  { piece, cancelAfterMs }: Subject,
  numbering: SmallWorldOptions['numbering'],
  faults: Faults,
): Promise<SmallWorldReport> {
  return runSmallWorld({ piece, pieces: PIECES, faults, numbering, cancelAfterMs })
}

class Exhaust {
  readonly #subject: Subject
  readonly #clean: SmallWorldReport
  readonly #failures: string[] = []
  #runs = 0
  #steps = 0

  constructor(subject: Subject, clean: SmallWorldReport) {
    this.#subject = subject
    this.#clean = clean
    this.#check('without faults', clean)
  }

  async run(numbering: SmallWorldOptions['numbering'], faults: Faults): Promise<void> {
    const report = await runSubject(this.#subject, numbering, faults)
    this.#runs += 1
    this.#check([...faults].map(([call, fault]) => `${fault} at ${numbering} call ${call}`).join(', '), report)
  }

  #check(when: string, report: SmallWorldReport): void {
    this.#steps += report.steps
    for (const { rule, problem } of report.findings) this.#failures.push(`${when}: ${rule}: ${problem}`)
    // A person may decide otherwise, and a cancellation may come too late, when a fault has shifted the time.
    const isFree =
      this.#subject.cancelAfterMs !== undefined || this.#subject.name === 'approval' || this.#subject.name === 'tour'
    if (!isFree && report.status !== this.#clean.status) {
      this.#failures.push(`${when}: it ended as ${report.status} instead of ${this.#clean.status}`)
    }
  }

  report(): ExhaustReport {
    const { name } = this.#subject
    return { name, calls: this.#clean.calls, runs: this.#runs, steps: this.#steps, failures: this.#failures }
  }
}
