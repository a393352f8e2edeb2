/** Features by name where the service names them by code, as in reports and feeds. */
export type NameOf = (code: string) => string

export interface FeatureNames {
  readonly nameOf: NameOf
  readonly choices: ReadonlyArray<{ readonly id: string; readonly name: string }>
}

interface Named {
  readonly code: string
  readonly name: string
}

/** The code stands alone where products differ in its name, and beside a name that two codes have. */
export const namesOf = (features: ReadonlyArray<Named>): FeatureNames => {
  const [names, codes] = [groups<string>(), groups<string>()]
  for (const { code, name } of features) {
    names.add(code, name)
    codes.add(name, code)
  }
  const nameOf: NameOf = (code) => {
    const [name, another] = names.of(code)
    if (name === undefined || another !== undefined) return code
    return codes.of(name).length > 1 ? `${name} (${code})` : name
  }
  const choices = [...names.keys()].map((id) => ({ id, name: nameOf(id) }))
  return { nameOf, choices: choices.sort((one, other) => one.name.localeCompare(other.name)) }
}

/** The different values of each key. */
const groups = <A>() => {
  const found = new Map<string, Set<A>>()
  return {
    add: (key: string, value: A) => found.set(key, (found.get(key) ?? new Set()).add(value)),
    of: (key: string): ReadonlyArray<A> => [...(found.get(key) ?? [])],
    keys: () => found.keys()
  }
}
