import { useState } from 'react'
import { readText } from '../job/json-field.tsx'
import { written } from '../ui/json.tsx'
import type { Draft } from './draft.ts'

/** A text that is JSON while somebody writes it: what can be read is passed on, what cannot is said. */
export function useJsonText(
  value: unknown,
  pass: (value: Draft) => void,
): { readonly text: string; readonly change: (text: string) => void; readonly problem: string | undefined } {
  const [text, setText] = useState(() => written(value))
  return {
    text,
    problem: readText(text).problem,
    change: (next) => {
      setText(next)
      const read = readText(next)
      if (read.problem === undefined) pass(read.value as Draft)
    },
  }
}
