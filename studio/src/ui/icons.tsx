// icons.tsx  Small drawings for buttons; the button beside them says what they mean.
const icon = (path: string) => () => (
  <svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false">
    <path d={path} />
  </svg>
)

export const Plus = icon('M12 5v14M5 12h14')
export const Menu = icon('M4 7h16M4 12h16M4 17h16')
export const Gear = icon('M4 8h8M16 8h4M4 16h4M12 16h8M14 5v6M10 13v6')
export const Send = icon('M12 19V5M6 11l6-6 6 6')
export const StopSquare = icon('M8 8h8v8H8z')
export const Clip = icon('M19 11l-7.5 7.5a4.5 4.5 0 0 1-6.4-6.4L13 4.2a3 3 0 0 1 4.2 4.2l-7.7 7.8a1.5 1.5 0 0 1-2.1-2.1L14 7.5')
export const ThumbUp = icon('M7 11v9H4v-9zM7 12l4-8c1.6 0 2.5 1.2 2.2 2.8L12.6 10H18a2 2 0 0 1 2 2.4l-1.2 6A2 2 0 0 1 16.8 20H7')
export const ThumbDown = icon('M17 13V4h3v9zM17 12l-4 8c-1.6 0-2.5-1.2-2.2-2.8l.6-3.2H6a2 2 0 0 1-2-2.4l1.2-6A2 2 0 0 1 7.2 4H17')
export const Trash = icon('M5 7h14M10 7V5h4v2M7 7l1 12h8l1-12')
export const Down = icon('M12 5v14M6 13l6 6 6-6')
export const Pin = icon('M9 4h6l-1 6 3 3H7l3-3zM12 13v7')
export const Back = icon('M14 6l-6 6 6 6')
export const Forward = icon('M10 6l6 6-6 6')
export const Cross = icon('M6 6l12 12M18 6L6 18')
export const Pulse = icon('M3 12h4l3-7 4 14 3-7h4')
export const Book = icon('M5 5h6a1 1 0 0 1 1 1v13a2 2 0 0 0-2-1H5zM19 5h-6a1 1 0 0 0-1 1v13a2 2 0 0 1 2-1h5z')
export const Folder = icon('M4 6h6l2 2h8v10H4z')
export const Fork = icon('M4 12h5M9 12c5 0 3-6 8-6h3M9 12c5 0 3 6 8 6h3M17 3l3 3-3 3M17 15l3 3-3 3')
export const Bubble = icon('M5 5h14v11h-8l-4 3v-3H5z')
