/** The icons of the package (Lucide, see display/icons-license.txt), in the colour of the surrounding text. */
import ICONS from "../../display/icons.json" with { type: "json" };

/** @param {keyof ICONS} name @param {number} [size] in pixels @returns {Node} */
export function icon(name, size = 16) {
  const text = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24" width="${size}" height="${size}" fill="none" stroke="currentColor" stroke-width="2" stroke-linecap="round" stroke-linejoin="round" aria-hidden="true" class="mnb-icon">${ICONS[name]}</svg>`;
  return document.importNode(new DOMParser().parseFromString(text, "image/svg+xml").documentElement, true);
}
