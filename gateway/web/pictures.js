/** Pictures of a message: made no larger than models look at, and so small that all of them fit into one request. */

import { el } from "./dom.js";

const LARGEST = 1_600; // pixels of the longer side that models see
const SMALLEST = 400; // of which they still see something
const LONGEST_DRAWING = 900_000; // characters of one that is sent as it is
const ROOM = 4_300_000; // characters of all of them: a request holds 5 MB, and the words need some
const QUALITY = 0.86;

let turn = Promise.resolve(); // the end of the last one: decoded, a photograph of 20 MB takes some hundred, and a phone has few

/** Returns a picture as a data address, after those before it. */
export function shrink(file) {
  const address = turn.then(async () => encode(await createImageBitmap(file), { longest: ROOM, isDrawing: file.type === "image/png" }));
  turn = address.catch(() => {});
  return address;
}

/** Makes those of some pictures smaller that take more than their share of a request. Returns whether they fit then. */
export async function fitTogether(pictures) {
  let [room, left] = [ROOM, pictures.length];
  for (const one of pictures.toSorted((first, second) => first.url.length - second.url.length)) {
    const share = room / left; // small ones leave theirs to large ones
    if (one.url.length > share) one.url = await reduce(one.url, share);
    room -= one.url.length;
    left -= 1;
  }
  return room >= 0;
}

async function reduce(url, longest) {
  const image = el("img", { src: url });
  await image.decode();
  return encode(await createImageBitmap(image), { longest });
}

function encode(bitmap, options) {
  try {
    return draw(bitmap, options);
  } finally {
    bitmap.close();
  }
}

function draw(bitmap, { longest, isDrawing = false }) {
  for (let side = LARGEST; ; side = Math.round(side * 0.8)) {
    const scale = Math.min(1, side / Math.max(bitmap.width, bitmap.height));
    const canvas = el("canvas", { width: Math.max(1, Math.round(bitmap.width * scale)), height: Math.max(1, Math.round(bitmap.height * scale)) });
    const context = canvas.getContext("2d");
    context.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
    const drawing = isDrawing ? canvas.toDataURL("image/png") : "";
    if (drawing && drawing.length < LONGEST_DRAWING) return drawing; // they stay sharp
    context.globalCompositeOperation = "destination-over"; // JPEG has no transparency, and would show it black
    context.fillStyle = "white";
    context.fillRect(0, 0, canvas.width, canvas.height);
    const photograph = canvas.toDataURL("image/jpeg", QUALITY);
    if (photograph.length < longest || side < SMALLEST) return photograph;
  }
}
