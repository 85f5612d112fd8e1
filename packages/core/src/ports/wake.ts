/**
 * The reason that our own code gives when it ends a sleep early. Without one, `abort()` makes a
 * DOMException with a stack each time, which was a fifth of the CPU of a busy engine.
 */
export const WOKEN = 'woken'
