// Draws very many points: with WebGL (by twgl.js, in vendor), or where there is none on a flat canvas.
//
// regl and what is built on it make functions from text, which this page's policy forbids; twgl does not.

import { drawPoints } from "./flat.js";
import * as twgl from "./vendor/twgl-full.module.js";

export const KINDS = ["labeled", "confirmed", "guessed", "unsure"];

const VERTEX = `
attribute vec2 position; attribute vec4 color; attribute float kind; attribute float shown;
uniform vec2 center; uniform vec2 scale; uniform float size;
varying vec3 tint; varying float shape; varying float soft;
void main() {
  tint = color.rgb; shape = kind;
  vec2 at = (position - center) * scale;
  gl_Position = shown > 0.5 ? vec4(at.x, -at.y, 0.0, 1.0) : vec4(9.0, 9.0, 0.0, 1.0);
  float side = size * (kind < 0.5 ? 0.75 : kind < 1.5 ? 1.25 : 1.0);
  soft = 2.0 / side;
  gl_PointSize = side;
}`;

// labeled: a small square; confirmed: a disc in a ring; guessed: a disc; unsure: an open circle. Edges fade over a pixel.
const FRAGMENT = `
precision mediump float;
varying vec3 tint; varying float shape; varying float soft; uniform vec3 ring;
void main() {
  if (shape < 0.5) { gl_FragColor = vec4(tint, 1.0) * 0.75; return; }
  float r = length(gl_PointCoord * 2.0 - 1.0);
  float cover = clamp((1.0 - r) / soft, 0.0, 1.0);
  if (shape > 2.5) cover *= clamp((r - 0.55) / soft + 1.0, 0.0, 1.0);
  if (cover <= 0.0) discard;
  bool isRing = shape < 1.5 && r > 0.68;
  gl_FragColor = (isRing ? vec4(ring, 1.0) : vec4(tint, 1.0) * (shape > 2.5 ? 1.0 : 0.9)) * cover;
}`;

export function hueOf(category) {
  return (category * 137.508) % 360;
}

export function colorOf(category, isDark) {
  return category ? `hsl(${hueOf(category)} 62% ${isDark ? 66 : 42}%)` : isDark ? "#a9a79f" : "#5e5b54";
}

function rgbOf(category, isDark) {
  if (!category) return isDark ? [0.66, 0.65, 0.62] : [0.37, 0.36, 0.33];
  const [hue, saturation, lightness] = [hueOf(category), 0.62, isDark ? 0.66 : 0.42];
  const amplitude = saturation * Math.min(lightness, 1 - lightness);
  const channel = (n) => {
    const k = (n + hue / 30) % 12;
    return lightness - amplitude * Math.max(-1, Math.min(k - 3, 9 - k, 1));
  };
  return [channel(0), channel(8), channel(4)];
}

// Whether there is no graphics card and the processor imitates one: then flat.js is faster. Asked once.
export function isImitated() {
  if (isImitated.answer === undefined) {
    const gl = document.createElement("canvas").getContext("webgl");
    const info = gl?.getExtension("WEBGL_debug_renderer_info");
    isImitated.answer = /swiftshader|llvmpipe|softpipe|software/i.test(gl?.getParameter(info?.UNMASKED_RENDERER_WEBGL ?? gl.RENDERER) ?? "");
    gl?.getExtension("WEBGL_lose_context")?.loseContext();
  }
  return isImitated.answer;
}

export class Points {
  constructor(canvas) {
    this.canvas = canvas;
    // Edges are smoothed by the shader: to compute every pixel four times would cost more than all else.
    const options = { premultipliedAlpha: true, antialias: false };
    this.gl = isImitated() ? null : canvas.getContext("webgl2", options) ?? canvas.getContext("webgl", options);
    if (this.gl) this.program = twgl.createProgramInfo(this.gl, [VERTEX, FRAGMENT]);
    this.places = null;
  }

  // places: what places.js reads, with `shown` as the filters are now
  set(places, isDark) {
    Object.assign(this, { places, isDark });
    const colors = new Map();
    this.rgbOf = (category) => {
      let rgb = colors.get(category);
      if (!rgb) colors.set(category, (rgb = rgbOf(category, isDark).map((share) => Math.round(255 * share))));
      return rgb;
    };
    if (!this.gl) return;
    const n = places.length;
    const [position, color] = [new Float32Array(2 * n), new Uint8Array(4 * n)];
    for (let at = 0; at < n; at++) {
      position[2 * at] = places.x[at];
      position[2 * at + 1] = places.y[at];
      color.set(this.rgbOf(places.categories[at]), 4 * at);
    }
    if (this.buffers) for (const { buffer } of Object.values(this.buffers.attribs)) this.gl.deleteBuffer(buffer);
    this.buffers = twgl.createBufferInfoFromArrays(this.gl, {
      position: { numComponents: 2, data: position }, color: { numComponents: 4, data: color, normalize: true },
      kind: { numComponents: 1, data: places.kinds, normalize: false }, shown: { numComponents: 1, data: places.shown, normalize: false } });
  }

  // view: middle of the plane in sight; scale: pixels per unit in x and y; size of a point in pixels
  draw(view, [scaleX, scaleY], size) {
    const { canvas, gl } = this;
    const density = window.devicePixelRatio || 1;
    const [width, height] = [canvas.clientWidth, canvas.clientHeight];
    if (canvas.width !== Math.round(width * density) || canvas.height !== Math.round(height * density)) {
      [canvas.width, canvas.height] = [Math.round(width * density), Math.round(height * density)];
    }
    if (!gl) return this.drawFlat(view, [scaleX, scaleY], size, density);
    gl.viewport(0, 0, canvas.width, canvas.height);
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT);
    if (!this.places?.length) return undefined;
    gl.useProgram(this.program.program);
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    twgl.setBuffersAndAttributes(gl, this.program, this.buffers);
    twgl.setUniforms(this.program, { center: [view.x, view.y], scale: [(2 * scaleX) / width, (2 * scaleY) / height], size: size * density,
      ring: this.ring });
    twgl.drawBufferInfo(gl, this.buffers, gl.POINTS);
    return undefined;
  }

  drawFlat(view, [scaleX, scaleY], size, density) {
    const { canvas } = this;
    const pen = canvas.getContext("2d");
    const pixels = pen.createImageData(canvas.width, canvas.height);
    if (this.places) {
      const [across, down] = [scaleX * density, scaleY * density];
      drawPoints(pixels, this.places, { left: canvas.width / 2 - view.x * across, top: canvas.height / 2 - view.y * down, across, down,
        size: size * density, rgbOf: this.rgbOf, ring: this.ring.map((share) => 255 * share) });
    }
    pen.putImageData(pixels, 0, 0);
  }

  get ring() {
    return this.isDark ? [0.93, 0.92, 0.89] : [0.12, 0.11, 0.1];
  }

  destroy() {
    this.gl?.getExtension("WEBGL_lose_context")?.loseContext();
  }
}
