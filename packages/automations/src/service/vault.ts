/** Keeps texts so that they can be used and not read: what is stored is sealed with a key that is not in the storage. */
export interface Vault {
  /** `purpose` names what it is for; what was sealed for something else does not open. */
  seal(text: string, purpose: string): string
  /** `undefined` when another key has sealed it, or for something else. */
  open(sealed: string, purpose: string): string | undefined
  /** A new text that nobody can guess. */
  secret(): string
}
