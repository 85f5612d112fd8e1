import type { wire } from '@impresario/client'
import { SCOPES } from '@impresario/protocol'
import { useState } from 'react'
import type { ReactNode } from 'react'
import { useText } from '../text/text.tsx'
import { Button } from '../ui/button.tsx'
import { Input, TextArea } from '../ui/field.tsx'
import { Failure } from '../ui/parts.tsx'

/** Name, scopes and person of an agent, new or known. */
export function AgentForm({
  agent,
  submit,
  error,
  isPending,
}: {
  readonly agent?: wire.AgentBody
  readonly submit: (body: object) => void
  readonly error: Error | null
  readonly isPending: boolean
}): ReactNode {
  const { t } = useText()
  const [name, setName] = useState(agent?.name ?? '')
  const [description, setDescription] = useState(agent?.description ?? '')
  const [person, setPerson] = useState(agent?.on_behalf_of ?? '')
  const [scopes, setScopes] = useState<ReadonlySet<string>>(new Set(agent?.scopes))
  return (
    <form
      className="flex flex-col gap-4"
      onSubmit={(event) => {
        event.preventDefault()
        submit({
          ...(name.trim() === agent?.name ? {} : { name: name.trim() }),
          scopes: SCOPES.filter((scope) => scopes.has(scope)),
          ...(description.trim() === (agent?.description ?? '') ? {} : { description: description.trim() }),
          ...personOf(person.trim(), agent),
        })
      }}
    >
      <Input
        label={t('agents.name')}
        required
        maxLength={100}
        value={name}
        onChange={({ target }) => setName(target.value)}
      />
      <TextArea
        label={t('agents.description')}
        maxLength={2_000}
        value={description}
        onChange={({ target }) => setDescription(target.value)}
      />
      <Input
        label={t('agents.person')}
        maxLength={200}
        value={person}
        onChange={({ target }) => setPerson(target.value)}
      />
      <fieldset>
        <legend className="mb-1.5 font-medium">{t('agents.scopes')}</legend>
        <div className="grid gap-x-4 gap-y-1 sm:grid-cols-2">
          {SCOPES.map((scope) => (
            <label key={scope} className="flex cursor-pointer items-center gap-2 rounded px-1 py-1 hover:bg-raise">
              <input
                type="checkbox"
                className="size-3.5 accent-(--fill)"
                checked={scopes.has(scope)}
                onChange={({ target }) => {
                  const next = new Set(scopes)
                  if (target.checked) next.add(scope)
                  else next.delete(scope)
                  setScopes(next)
                }}
              />
              <span className="font-mono text-xs">{scope}</span>
            </label>
          ))}
        </div>
      </fieldset>
      {error === null ? null : <Failure error={error} />}
      <div className="flex justify-end">
        <Button type="submit" tone="primary" disabled={isPending || name.trim() === ''}>
          {t('agents.save')}
        </Button>
      </div>
    </form>
  )
}

/** Only what is said anew. An agent that is known can act for nobody again. */
function personOf(person: string, agent: wire.AgentBody | undefined): { readonly on_behalf_of?: string | null } {
  if (person === (agent?.on_behalf_of ?? '')) return {}
  return { on_behalf_of: person === '' ? null : person }
}
