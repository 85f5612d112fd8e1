import type { Chance } from './chance.ts'

/** The probability of each fault in one world, and the latencies. Zero means that the fault is disabled. */
export interface Faults {
  latencyMs: number
  crash: number
  lostRequest: number
  lostReply: number
  pause: number
  lostHint: number
  /** Probability of an orderly stop, per ten seconds and process. */
  stop: number
  syncMs: number
  writeCrash: number
  writeFailure: number
  /** Between clients or workers and the engines. */
  networkMs: number
  lostMessage: number
  lostAnswer: number
  workerDeath: number
  /** Probability of starting without a registration. */
  unregistered: number
  workerFreeze: number
  workerSlow: number
  repeatedResult: number
  abortedPoll: number
}

/** Swarm testing: in any one world half of the faults are disabled, so that the others occur in every combination. */
export function drawFaults(chance: Chance): Faults {
  const some = (most: number): number => {
    const isOn = chance.next() < 0.5
    const value = chance.next() * most
    return isOn ? value : 0
  }
  return {
    latencyMs: chance.pick([0, 0, 5, 50]),
    crash: some(0.004),
    lostRequest: some(0.05),
    lostReply: some(0.05),
    pause: some(0.002),
    lostHint: chance.pick([0, 0, 0.5, 1]),
    stop: some(0.2),
    syncMs: chance.pick([0, 1, 5, 50, 300]),
    writeCrash: some(0.03),
    writeFailure: some(0.01),
    networkMs: chance.pick([0, 5, 50]),
    lostMessage: some(0.1),
    lostAnswer: some(0.1),
    workerDeath: some(0.1),
    unregistered: some(0.5),
    workerFreeze: some(0.05),
    workerSlow: some(0.15),
    repeatedResult: some(0.3),
    abortedPoll: some(0.2),
  }
}

/** The faults end: everything works from now on, as slowly as before. */
export function calm(faults: Faults): void {
  const { latencyMs, syncMs, networkMs } = faults
  Object.assign(faults, NO_FAULTS, { latencyMs, syncMs, networkMs })
}

export function noFaults(): Faults {
  return { ...NO_FAULTS }
}

const NO_FAULTS: Readonly<Faults> = {
  latencyMs: 0,
  crash: 0,
  lostRequest: 0,
  lostReply: 0,
  pause: 0,
  lostHint: 0,
  stop: 0,
  syncMs: 0,
  writeCrash: 0,
  writeFailure: 0,
  networkMs: 0,
  lostMessage: 0,
  lostAnswer: 0,
  workerDeath: 0,
  unregistered: 0,
  workerFreeze: 0,
  workerSlow: 0,
  repeatedResult: 0,
  abortedPoll: 0,
}
