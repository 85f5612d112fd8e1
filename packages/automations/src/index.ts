export { compileExpression } from './expression/expression.ts'
export type { Expression } from './expression/expression.ts'
export { compileTemplate } from './template/template.ts'
export type { Template } from './template/template.ts'
