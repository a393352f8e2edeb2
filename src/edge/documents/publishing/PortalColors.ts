/**
 * The vendor's color as a style sheet of the customer's page. It is mixed with black or white until texts in it have a contrast of
 * 4.5 to 1 with the page, in light and in dark.
 */

type Rgb = readonly [red: number, green: number, blue: number]

const contrastMin = 4.5
const [black, white]: readonly [Rgb, Rgb] = [
  [0, 0, 0],
  [255, 255, 255]
]
/** The page's lightest and darkest surfaces behind texts (src/clients/console/look/styles/tokens.css: --canvas, --raised). */
const surfaces = { light: [243, 244, 247], dark: [27, 31, 40] } as const
const steps = 20

export const colorsOf = (color: string | undefined): string => {
  if (color === undefined) return ""
  const own = [1, 3, 5].map((at) => Number.parseInt(color.slice(at, at + 2), 16)) as unknown as Rgb
  const [light, dark] = [readable(own, black, surfaces.light), readable(own, white, surfaces.dark)]
  const pair = (one: Rgb, other: Rgb) => `light-dark(${textOf(one)}, ${textOf(other)})`
  return `:root:root {
  --accent: ${pair(light, dark)};
  --accent-hover: ${pair(mixed(light, black, 0.15), mixed(dark, white, 0.25))};
  --accent-soft: ${pair(mixed(light, white, 0.9), mixed(dark, surfaces.dark, 0.85))};
  --on-accent: ${pair(white, onDark)};
}
`
}

/** The text of a button, in dark. */
const onDark: Rgb = [16, 19, 31]

const readable = (color: Rgb, towards: Rgb, surface: Rgb): Rgb => {
  for (let step = 0; step < steps; step++) {
    const candidate = mixed(color, towards, step / steps)
    if (contrast(candidate, surface) >= contrastMin) return candidate
  }
  return towards
}

const mixed = (color: Rgb, other: Rgb, share: number): Rgb =>
  color.map((part, at) => Math.round(part + (other[at]! - part) * share)) as unknown as Rgb

const textOf = (color: Rgb): string => `#${color.map((part) => part.toString(16).padStart(2, "0")).join("")}`

/** The contrast of two colors (WCAG 2.2). */
const contrast = (one: Rgb, other: Rgb): number => {
  const [dark, light] = [luminance(one), luminance(other)].sort((a, b) => a - b) as [number, number]
  return (light + 0.05) / (dark + 0.05)
}

const luminance = (color: Rgb): number => {
  const [red, green, blue] = color.map((part) => {
    const share = part / 255
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4
  }) as [number, number, number]
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}
