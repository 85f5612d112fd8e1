/**
 * In CI a test that failed is tried once more, and named as unsteady if it passes then: a busy machine must not stop a landing.
 * What is drawn from a seed is the same at both tries, and what counts losses (kill, soak) has `retry: 0`.
 */
export const RETRY = process.env['CI'] === 'true' ? 1 : 0
