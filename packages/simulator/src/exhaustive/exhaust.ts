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

/** A reference blueprint, and when its client cancels the job, if it does. */
export interface Subject {
  readonly name: string
  readonly piece: Piece
  readonly cancelAfterMs: number | undefined
}

const PIECES = [...referencePieces(), ...companionPieces()]

/** `tour` is cancelled in each of its states, one after the other; without faults the times fall into them. */
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
export async function everySingle(subject: Subject, seed = 1): Promise<ExhaustReport> {
  const clean = await runSubject(subject, { numbering: 'all', faults: new Map(), seed })
  const tally = new Exhaust(subject, clean, seed)
  for (let call = 0; call < clean.calls; call += 1) {
    for (const fault of SINGLE_FAULTS) await tally.run('all', new Map([[call, fault]]))
  }
  return tally.report()
}

/**
 * Tries every pair of faults at every pair of calls that change something, including some calls after those of a clean
 * run.
 */
export async function everyPair(subject: Subject, seed = 1): Promise<ExhaustReport> {
  const clean = await runSubject(subject, { numbering: 'effective', faults: new Map(), seed })
  const tally = new Exhaust(subject, clean, seed)
  const { calls } = clean
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
  run: Pick<SmallWorldOptions, 'numbering' | 'faults' | 'seed'>,
): Promise<SmallWorldReport> {
  return runSmallWorld({ piece, pieces: PIECES, cancelAfterMs, ...run })
}

class Exhaust {
  readonly #subject: Subject
  readonly #clean: SmallWorldReport
  readonly #seed: number
  readonly #failures: string[] = []
  #runs = 0
  #steps = 0

  constructor(subject: Subject, clean: SmallWorldReport, seed: number) {
    this.#subject = subject
    this.#seed = seed
    this.#clean = clean
    this.#check('without faults', clean)
  }

  async run(numbering: SmallWorldOptions['numbering'], faults: Faults): Promise<void> {
    const report = await runSubject(this.#subject, { numbering, faults, seed: this.#seed })
    this.#runs += 1
    this.#check([...faults].map(([call, fault]) => `${fault} at ${numbering} call ${call}`).join(', '), report)
  }

  #check(what: string, report: SmallWorldReport): void {
    const when = `seed ${this.#seed}, ${what}`
    this.#steps += report.steps
    for (const { rule, problem } of report.findings) this.#failures.push(`${when}: ${rule}: ${problem}`)
    // If a fault has shifted the time, a person may decide differently, and a cancellation may come too late.
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
