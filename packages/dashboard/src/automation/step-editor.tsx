import type { FieldProblem } from '@impresario/protocol'
import type { ReactNode } from 'react'
import { useText } from '../text/text.tsx'
import { Button, IconButton } from '../ui/button.tsx'
import { Input, Select } from '../ui/field.tsx'
import { changed, freshId, movedAt, partsOf, replacedAt, textOf } from './draft.ts'
import type { Draft } from './draft.ts'
import { problemsAt } from './problems.ts'
import type { ProblemAt } from './problems.ts'
import { DEPTH_MAX, idsIn, newStep, STEP_KINDS, stepKindOf, stepOfKind } from './step-kind.ts'
import type { StepKind } from './step-kind.ts'
import { Policies } from './step-policies.tsx'
import { Question, ToolStep } from './step-fields.tsx'
import { Said } from './trigger-editor.tsx'

interface StepListProps {
  readonly steps: readonly Draft[]
  readonly change: (steps: readonly Draft[]) => void
  readonly problems: readonly FieldProblem[]
  /** Where these steps stand in the definition, as problems name it. */
  readonly path: string
  /** What stands before the number of each: `2.` inside of step 2. */
  readonly numbered?: string
  /** Ids that are taken elsewhere. */
  readonly taken?: readonly string[]
  readonly depth?: number
}

/** Steps, each with its form. A step can have such a list inside of it. */
export function StepList(props: StepListProps): ReactNode {
  const { steps, change, problems, path, numbered = '', taken = [], depth = 1 } = props
  const { t } = useText()
  const ids = [...idsIn(steps), ...taken]
  return (
    <div className="flex flex-col gap-3">
      {steps.map((step, at) => (
        <StepEditor
          key={at}
          number={`${numbered}${at + 1}`}
          step={step}
          siblings={steps.flatMap((one, index) => (index === at ? [] : [textOf(one['id'])]))}
          taken={ids}
          depth={depth}
          change={(next) => change(replacedAt(steps, at, next))}
          move={(by) => change(movedAt(steps, at, by))}
          remove={() => change(steps.toSpliced(at, 1))}
          problems={problems}
          path={`${path}[${at}]`}
        />
      ))}
      <Said messages={problems.filter(({ field }) => field === path).map(({ message }) => message)} />
      <div>
        <Button
          size="small"
          icon="plus"
          onClick={() => change([...steps, newStep(freshId(steps, numbered.replaceAll('.', '_'), ids))])}
        >
          {numbered === '' ? t('editor.addStep') : t('editor.addInner', { n: numbered.slice(0, -1) })}
        </Button>
      </div>
    </div>
  )
}

/** Fields that show their own problems. */
const STEP_FIELDS = [
  'id',
  'uses',
  'with',
  'if',
  'save_as',
  'timeout_seconds',
  'on_error',
  'approval',
  'pipeline',
  'parallel',
  'retry',
  'for_each',
]

interface StepProps {
  readonly step: Draft
  /** Where it stands, as people count: `2`, or `2.1` for the first step inside of it. */
  readonly number: string
  readonly depth: number
  /** Ids of the other steps of its list: it can go on there when it fails. */
  readonly siblings: readonly string[]
  readonly taken: readonly string[]
  readonly change: (step: Draft) => void
  readonly move: (by: -1 | 1) => void
  readonly remove: () => void
  readonly problems: readonly FieldProblem[]
  readonly path: string
}

/** One step: what it does, and under which condition. */
function StepEditor(props: StepProps): ReactNode {
  const { step, number, depth, siblings, change, move, remove } = props
  const { t } = useText()
  const kind = stepKindOf(step)
  const problemAt = problemsAt(props.problems, props.path, STEP_FIELDS)
  const put = (part: Draft): void => change(changed(step, part))
  const kinds = STEP_KINDS.filter((one) => depth < DEPTH_MAX || one === 'tool' || one === 'approval' || one === kind)
  return (
    <fieldset className="rounded-lg border border-line p-3">
      <legend className="px-1 font-medium">{t('editor.step', { n: number })}</legend>
      <div className="flex flex-wrap items-start gap-3">
        <div className="w-36">
          <Input
            label="id"
            value={textOf(step['id'])}
            problem={problemAt('id')[0]}
            onChange={({ target }) => put({ id: target.value })}
          />
        </div>
        <div className="w-60">
          <Select
            label={t('editor.does')}
            value={kind}
            onChange={({ target }) => change(stepOfKind(target.value as StepKind, step))}
          >
            {kinds.map((one) => (
              <option key={one} value={one}>
                {t(`step.${one}`)}
              </option>
            ))}
          </Select>
        </div>
        <div className="ml-auto flex pt-5">
          <IconButton
            icon="left"
            className="rotate-90"
            label={t('editor.up', { n: number })}
            onClick={() => move(-1)}
          />
          <IconButton
            icon="right"
            className="rotate-90"
            label={t('editor.lower', { n: number })}
            onClick={() => move(1)}
          />
          <IconButton icon="trash" label={t('editor.removeStep', { n: number })} onClick={remove} />
        </div>
      </div>
      <div className="mt-3">
        <Body {...props} kind={kind} problemAt={problemAt} />
      </div>
      <Policies step={step} put={put} siblings={siblings} problemAt={problemAt} />
      <Said messages={problemAt('')} />
    </fieldset>
  )
}

/** The fields of its kind. */
function Body({
  kind,
  problemAt,
  ...props
}: StepProps & { readonly kind: StepKind; readonly problemAt: ProblemAt }): ReactNode {
  const { step, change, problems, path } = props
  if (kind === 'approval') return <Question step={step} change={change} problems={problems} path={path} />
  if (kind === 'tool') return <ToolStep step={step} change={change} problemAt={problemAt} />
  return (
    <StepList
      steps={partsOf(step, kind)}
      change={(steps) => change({ ...step, [kind]: steps })}
      problems={problems}
      path={`${path}.${kind}`}
      numbered={`${props.number}.`}
      taken={props.taken}
      depth={props.depth + 1}
    />
  )
}
