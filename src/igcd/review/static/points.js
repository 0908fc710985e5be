// Draws very many points: with WebGL (by twgl.js, in vendor), or where there is none on a flat canvas.
//
// regl and what is built on it make functions from text, which this page's policy forbids; twgl does not.

import * as twgl from "./vendor/twgl-full.module.js";

export const KINDS = ["labeled", "confirmed", "guessed", "unsure"];

const VERTEX = `
attribute vec2 position; attribute vec3 color; attribute float kind; attribute float shown;
uniform vec2 center; uniform vec2 scale; uniform float size;
varying vec3 tint; varying float shape;
void main() {
  tint = color; shape = kind;
  vec2 at = (position - center) * scale;
  gl_Position = shown > 0.5 ? vec4(at.x, -at.y, 0.0, 1.0) : vec4(9.0, 9.0, 0.0, 1.0);
  gl_PointSize = size * (kind < 0.5 ? 0.75 : kind < 1.5 ? 1.25 : 1.0);
}`;

// labeled: a small square; confirmed: a disc in a ring; guessed: a disc; unsure: an open circle.
const FRAGMENT = `
precision mediump float;
varying vec3 tint; varying float shape; uniform vec3 ring;
void main() {
  float r = length(gl_PointCoord * 2.0 - 1.0);
  if (shape < 0.5) { gl_FragColor = vec4(tint, 1.0) * 0.75; return; }
  if (r > 1.0) discard;
  if (shape > 2.5) { if (r < 0.55) discard; gl_FragColor = vec4(tint, 1.0); return; }
  bool isRing = shape < 1.5 && r > 0.68;
  gl_FragColor = isRing ? vec4(ring, 1.0) : vec4(tint, 1.0) * 0.9;
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

export class Points {
  // points: { x, y, category, kind }; isShown(point)
  constructor(canvas) {
    this.canvas = canvas;
    this.gl = canvas.getContext("webgl2", { premultipliedAlpha: true, antialias: true }) ?? canvas.getContext("webgl");
    if (this.gl) this.program = twgl.createProgramInfo(this.gl, [VERTEX, FRAGMENT]);
    this.points = [];
  }

  set(points, isShown, isDark) {
    Object.assign(this, { points, isShown, isDark });
    if (!this.gl) return;
    const n = points.length;
    const [position, color, kind, shown] = [new Float32Array(2 * n), new Float32Array(3 * n), new Float32Array(n), new Float32Array(n)];
    const colors = new Map();
    for (let at = 0; at < n; at++) {
      const point = points[at];
      position[2 * at] = point.x;
      position[2 * at + 1] = point.y;
      let rgb = colors.get(point.category);
      if (!rgb) colors.set(point.category, (rgb = rgbOf(point.category, isDark)));
      color[3 * at] = rgb[0];
      color[3 * at + 1] = rgb[1];
      color[3 * at + 2] = rgb[2];
      kind[at] = point.kind;
      shown[at] = isShown(point) ? 1 : 0;
    }
    if (this.buffers) for (const { buffer } of Object.values(this.buffers.attribs)) this.gl.deleteBuffer(buffer);
    this.buffers = twgl.createBufferInfoFromArrays(this.gl, {
      position: { numComponents: 2, data: position }, color: { numComponents: 3, data: color },
      kind: { numComponents: 1, data: kind }, shown: { numComponents: 1, data: shown } });
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
    if (!this.points.length) return undefined;
    gl.useProgram(this.program.program);
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    twgl.setBuffersAndAttributes(gl, this.program, this.buffers);
    twgl.setUniforms(this.program, { center: [view.x, view.y], scale: [(2 * scaleX) / width, (2 * scaleY) / height], size: size * density,
      ring: this.isDark ? [0.93, 0.92, 0.89] : [0.12, 0.11, 0.1] });
    twgl.drawBufferInfo(gl, this.buffers, gl.POINTS);
    return undefined;
  }

  drawFlat(view, [scaleX, scaleY], size, density) {
    const pen = this.canvas.getContext("2d");
    pen.setTransform(density, 0, 0, density, 0, 0);
    pen.clearRect(0, 0, this.canvas.clientWidth, this.canvas.clientHeight);
    for (const point of this.points) {
      if (!this.isShown(point)) continue;
      pen.beginPath();
      pen.arc(this.canvas.clientWidth / 2 + (point.x - view.x) * scaleX, this.canvas.clientHeight / 2 + (point.y - view.y) * scaleY, size / 2, 0, 7);
      pen.fillStyle = pen.strokeStyle = colorOf(point.category, this.isDark);
      if (KINDS[point.kind] === "unsure") pen.stroke();
      else pen.fill();
    }
  }

  destroy() {
    this.gl?.getExtension("WEBGL_lose_context")?.loseContext();
  }
}
