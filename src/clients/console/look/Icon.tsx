/** Icons, as paths in a box of 24 (from Lucide, ISC): only those that the console uses. They are for eyes only, beside words. */
const paths = {
  overview: ["M3 3h7v9H3z", "M14 3h7v5h-7z", "M14 12h7v9h-7z", "M3 16h7v5H3z"],
  key: ["M2.6 17.4A2 2 0 0 0 2 18.8V21a1 1 0 0 0 1 1h3v-3h3v-3h2l1.4-1.4a6.5 6.5 0 1 0-4-4z", "M16.5 7.5h.01"],
  device: ["M4 5h16v11H4z", "M2 20h20"],
  product: ["M12 2.5l8.5 4.7v9.6L12 21.5l-8.5-4.7V7.2z", "M3.5 7.2L12 12l8.5-4.8", "M12 12v9.5"],
  people: [
    "M16 21v-2a4 4 0 0 0-4-4H6a4 4 0 0 0-4 4v2",
    "M9 11a4 4 0 1 0 0-8a4 4 0 0 0 0 8",
    "M22 21v-2a4 4 0 0 0-3-3.9",
    "M16 3.1a4 4 0 0 1 0 7.8"
  ],
  repeat: ["M17 2l4 4l-4 4", "M3 11v-1a4 4 0 0 1 4-4h14", "M7 22l-4-4l4-4", "M21 13v1a4 4 0 0 1-4 4H3"],
  receipt: [
    "M4 2v20l2-1l2 1l2-1l2 1l2-1l2 1l2-1l2 1V2l-2 1l-2-1l-2 1l-2-1l-2 1l-2-1l-2 1z",
    "M8 8h8",
    "M8 12h8",
    "M8 16h4"
  ],
  chart: ["M3 3v18h18", "M8 17v-5", "M13 17V7", "M18 17v-8"],
  activity: ["M22 12h-4l-3 8L9 4l-3 8H2"],
  webhook: [
    "M18 16.98h-6c-1.1 0-1.95.94-2.48 1.9A4 4 0 0 1 2 17c.01-.7.2-1.4.57-2",
    "M6 17l3.13-5.78c.53-.97.1-2.18-.5-3.1a4 4 0 1 1 6.89-4.06",
    "M12 6l3.13 5.73C15.66 12.7 16.9 13 18 13a4 4 0 0 1 0 8"
  ],
  lock: ["M5 11h14v10H5z", "M8 11V7a4 4 0 0 1 8 0v4"],
  gauge: ["M12 14l4-4", "M3.3 19a10 10 0 1 1 17.4 0"],
  columns: ["M3 4h18v16H3z", "M9 4v16", "M15 4v16"],
  bookmark: ["M6 3h12v18l-6-4l-6 4z"],
  search: ["M11 19a8 8 0 1 0 0-16a8 8 0 0 0 0 16", "M21 21l-4.3-4.3"],
  menu: ["M4 6h16", "M4 12h16", "M4 18h16"],
  more: ["M5 12h.01", "M12 12h.01", "M19 12h.01"],
  plus: ["M12 5v14", "M5 12h14"],
  close: ["M18 6L6 18", "M6 6l12 12"],
  down: ["M6 9l6 6l6-6"],
  next: ["M9 6l6 6l-6 6"],
  check: ["M20 6L9 17l-5-5"],
  exit: ["M9 21H5a2 2 0 0 1-2-2V5a2 2 0 0 1 2-2h4", "M16 17l5-5l-5-5", "M21 12H9"],
  table: ["M3 4h18v16H3z", "M3 10h18", "M9 10v10"]
} as const

export type IconName = keyof typeof paths

export const Icon = ({ name }: { readonly name: IconName }) => (
  <svg className={`icon icon-${name}`} viewBox="0 0 24 24" width="16" height="16" aria-hidden="true">
    {paths[name].map((d) => (
      <path key={d} d={d} />
    ))}
  </svg>
)

/** The mark of the console: a key's bow with its hole, in the accent. */
export const Mark = () => (
  <svg className="mark" viewBox="0 0 24 24" width="24" height="24" aria-hidden="true">
    <rect className="mark-field" width="24" height="24" rx="6.5" />
    <path
      className="mark-sign"
      d="M9.2 5.6a4.1 4.1 0 1 0 2.2 7.5h1.9v2.1h2.1v2.1h3.2v-2.9l-5.4-5.4A4.1 4.1 0 0 0 9.2 5.6zm-.6 2.6a1.2 1.2 0 1 1 0 2.4a1.2 1.2 0 0 1 0-2.4z"
    />
  </svg>
)
