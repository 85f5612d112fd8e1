import type { FieldProblem } from '@impresario/protocol'
import { ApiError } from '../data/api.ts'

/** What is wrong at a field below one place, and at the place itself for ''. */
export type ProblemAt = (field: string) => readonly string[]

export function problemsIn(error: Error | null): readonly FieldProblem[] {
  if (!(error instanceof ApiError)) return []
  return error.problems.length > 0 ? error.problems : [{ field: '', message: error.message }]
}

/** The problems of one trigger or step, by the name of the field. '' has those that no field of the form shows. */
export function problemsAt(problems: readonly FieldProblem[], place: string, shown: readonly string[]): ProblemAt {
  const below = problems.filter(({ field }) => field === place || field.startsWith(`${place}.`))
  const of = (field: string): string => field.slice(place.length + 1).split(/[.[]/, 1)[0] ?? ''
  return (name) =>
    below
      .filter(({ field }) => (name === '' ? !shown.includes(of(field)) : of(field) === name))
      .map(({ message }) => message)
}

/** Those that belong to no trigger and no step. */
export function otherProblems(problems: readonly FieldProblem[]): readonly FieldProblem[] {
  return problems.filter(({ field }) => !/^(?:triggers|pipeline)\[\d+\]/.test(field) && field !== 'title')
}
