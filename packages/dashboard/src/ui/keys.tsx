import { useLayoutEffect } from 'react'

/** What a key does; `g j` is one key after another. */
export type KeyMap = Readonly<Record<string, (event: KeyboardEvent) => void>>

const SECOND_KEY_MS = 1_200
let first: { readonly key: string; readonly at: number } | undefined

/** Listens to keys while the page is shown. Nothing happens while somebody types, or while a dialog is open. */
export function useKeys(keys: KeyMap): void {
  // With the page that it belongs to, not a moment after it has been seen.
  useLayoutEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return
      if (document.querySelector('dialog[open]') !== null) return
      const { key } = event
      // Who has gone to a button presses that one, and nothing else.
      if ((key === 'Enter' || key === ' ') && isPressable(event.target)) return
      const pair = first !== undefined && Date.now() - first.at < SECOND_KEY_MS ? `${first.key} ${key}` : undefined
      // After the first key of a pair the second one means nothing by itself: `g r` leads away and retries no job.
      const act = keys[pair ?? key]
      if (act === undefined) {
        if (key === 'g' && pair === undefined) first = { key, at: Date.now() }
        return
      }
      first = undefined
      event.preventDefault()
      act(event)
    }
    document.addEventListener('keydown', onKey)
    return () => document.removeEventListener('keydown', onKey)
  }, [keys])
}

function isTyping(target: EventTarget | null): boolean {
  // Nothing is written into a box that is only ticked.
  if (target instanceof HTMLInputElement) return target.type !== 'checkbox' && target.type !== 'radio'
  return target instanceof HTMLElement && (target.isContentEditable || /^(?:TEXTAREA|SELECT)$/.test(target.tagName))
}

function isPressable(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.closest('a[href], button, summary, [role="button"]') !== null
}
