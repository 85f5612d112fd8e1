/** A run of an automation is a job of a blueprint that is named after it. */
const AUTOMATION = 'automation/'

/** The automation whose run a job of this blueprint is. */
export function automationIn(blueprint: string): string | undefined {
  return blueprint.startsWith(AUTOMATION) ? blueprint.slice(AUTOMATION.length) : undefined
}
