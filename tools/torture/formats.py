"""Mutations that know the format: what comes out is still of it, with one thing in it that nobody expects."""

import copy
import csv
import gzip
import hashlib
import io
import json
import pickle
import random
import re
import sqlite3
import struct
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from tools.torture.byte_mutation import mutate_bytes
from tools.torture.odd_values import DEEP, ODD_NUMBERS, odd_text, odd_value

Mutation = Callable[[bytes, random.Random], bytes]
NESTED = "[" * 3000 + "]" * 3000


def mutate_tree(value: Any, rng: random.Random) -> Any:  # noqa: ANN401 - whatever JSON holds
    """A value of JSON with one node changed, removed, renamed, doubled or moved."""
    value = copy.deepcopy(value)
    nodes = list(_containers(value))
    if not nodes:
        return odd_value(rng)
    node = rng.choice(nodes)
    if isinstance(node, dict):
        if not node:
            node[odd_text(rng)] = odd_value(rng)
            return value
        key = rng.choice(list(node))
        match rng.randrange(6):
            case 0:
                del node[key]
            case 1:
                node[odd_text(rng)] = node.pop(key)
            case 2:
                node[key] = copy.deepcopy(node[rng.choice(list(node))])
            case 3:
                node[odd_text(rng)] = odd_value(rng)
            case _:
                node[key] = odd_value(rng)
        return value
    if not node:
        node.append(odd_value(rng))
        return value
    at = rng.randrange(len(node))
    match rng.randrange(5):
        case 0:
            del node[at]
        case 1:
            node.insert(at, copy.deepcopy(node[at]))
        case 2:
            node.clear()
        case _:
            node[at] = odd_value(rng)
    return value


def _containers(value: Any) -> Any:  # noqa: ANN401 - whatever JSON holds
    if isinstance(value, dict | list):
        yield value
        for part in value.values() if isinstance(value, dict) else value:
            yield from _containers(part)


def json_text(value: Any) -> str:  # noqa: ANN401 - whatever JSON holds
    """JSON as Python writes it, NaN and all, with the deep nesting where it is asked for."""
    return json.dumps(value).replace(json.dumps(DEEP), NESTED)


def mutate_json(content: bytes, rng: random.Random) -> bytes:
    """A JSON file with another value in it."""
    text = json_text(mutate_tree(json.loads(content), rng))
    if rng.random() < 0.05:
        text = text.replace('"', "'", 1) if rng.random() < 0.5 else text + "\n{}"
    return text.encode("utf-8", "surrogatepass")


def mutate_json_lines(content: bytes, rng: random.Random) -> bytes:
    """One line of a file of JSON lines changed."""
    lines = content.splitlines()
    at = rng.randrange(len(lines))
    lines[at] = mutate_json(lines[at], rng)
    return b"\n".join(lines) + b"\n"


def mutate_yaml(content: bytes, rng: random.Random) -> bytes:
    """A YAML file with another value, an anchor that refers to itself, a tag, or a key twice."""
    import yaml

    if rng.random() < 0.15:
        lines = content.decode().splitlines()
        at = rng.randrange(len(lines))
        key = lines[at].partition(":")[0]
        lines[at] = f"{key}: " + rng.choice(
            (
                "&a [*a]",
                "*nowhere",
                "!!python/name:os.system",
                "!!binary ////",
                "2001-01-01",
                "0x1f",
                "1_000",
                "&b {<<: *b}",
            )
        )
        if rng.random() < 0.3:
            lines.insert(at, lines[at])
        return "\n".join(lines).encode()
    return json_text(mutate_tree(yaml.safe_load(content), rng)).encode("utf-8", "surrogatepass")


def table_mutation(delimiter: str, *, quoted: bool = True) -> Mutation:
    """Mutations of tables: cells, columns, rows, the header, the delimiter."""

    def mutate(content: bytes, rng: random.Random) -> bytes:
        text = content.decode()
        rows = (
            list(csv.reader(io.StringIO(text), delimiter=delimiter))
            if quoted
            else [line.split(delimiter) for line in text.splitlines()]
        )
        at = rng.randrange(len(rows)) if rng.random() < 0.8 else 0
        column = rng.randrange(len(rows[at])) if rows[at] else 0
        written = delimiter
        match rng.randrange(10):
            case 0:
                del rows[at]
            case 1:
                rows.insert(at, list(rows[at]))
            case 2:
                for row in rows:
                    del row[column : column + 1]
            case 3:
                rows[at].append(odd_text(rng))
            case 4:
                other = rng.randrange(len(rows))
                rows[at], rows[other] = rows[other], rows[at]
            case 5:
                written = rng.choice((";", "\t", ",", "|"))
            case _:
                if rows[at]:
                    rows[at][column] = odd_text(rng) if rng.random() < 0.7 else str(rng.choice(ODD_NUMBERS))
        if not quoted:
            return "\n".join(written.join(row) for row in [*rows, []]).encode("utf-8", "surrogatepass")
        out = io.StringIO()
        csv.writer(out, delimiter=written, lineterminator=rng.choice(("\n", "\n", "\r\n"))).writerows(rows)
        return out.getvalue().encode("utf-8", "surrogatepass")

    return mutate


mutate_csv = table_mutation(",")
mutate_tsv = table_mutation("\t", quoted=False)


def mutate_lines(content: bytes, rng: random.Random) -> bytes:
    """A text file with a line changed, removed or doubled."""
    return table_mutation(" ", quoted=False)(content, rng)


def mutate_split(content: bytes, rng: random.Random) -> bytes:
    """A split file with another content, and the checksum that fits it."""
    body = content.rpartition(b"#sha256 ")[0]
    changed = mutate_tsv(body, rng) if rng.random() < 0.7 else mutate_bytes(body, rng)
    if rng.random() < 0.2:
        changed = re.sub(rb"#spec .*", lambda found: b"#spec " + mutate_json(found[0][6:], rng), body)
    return changed + f"#sha256 {hashlib.sha256(changed).hexdigest()}\n".encode()


def mutate_npy(content: bytes, rng: random.Random) -> bytes:
    """An array of another shape, type or value, or a header that promises what does not follow."""
    array = np.lib.format.read_array(io.BytesIO(content), allow_pickle=False)
    header_end = 10 + struct.unpack("<H", content[8:10])[0]
    if rng.random() < 0.4:
        header = content[10:header_end].decode("latin1").strip()
        pieces = (
            "(",
            ")",
            ",",
            "'",
            "<f4",
            "<f8",
            "|O",
            "<U7",
            "False",
            "True",
            "shape",
            "descr",
            "3",
            "0",
            "9" * 30,
            "[" * 200,
        )
        old = rng.choice([piece for piece in pieces if piece in header] or [""])
        header = header.replace(old, rng.choice(pieces), 1)
        encoded = header.encode("latin1") + b"\n"
        return content[:8] + struct.pack("<H", len(encoded) & 0xFFFF) + encoded + content[header_end:]
    out = io.BytesIO()
    np.save(out, _other_array(array, rng), allow_pickle=False)
    return out.getvalue()


def _other_array(array: Any, rng: random.Random) -> Any:  # noqa: ANN401 - any array
    array = array.copy()
    kind = rng.randrange(8)
    if kind == 0:
        return array.reshape(-1)
    if kind == 1:
        return array[: rng.randrange(len(array) + 1)] if array.ndim else array
    if kind == 2:
        return array[..., None]
    if kind == 3 and array.dtype.kind in "iuf":
        with np.errstate(all="ignore"):
            return array.astype(rng.choice(("<f8", "<i8", "|u1", "<f2", "<c8", "|b1", "<U7", "<M8[s]")))
    if kind == 4 and array.dtype.kind == "f":
        with np.errstate(all="ignore"):
            return array * rng.choice((0.0, 1e25, 1e-30, 1e19, -1.0))
    if array.size and array.dtype.kind in "iuf":
        with np.errstate(all="ignore"):
            flat = array.reshape(-1)
            odd = np.array([rng.choice((np.nan, np.inf, -np.inf, 1e308, -1, 2**31, 2**62, 0))])
            flat[rng.randrange(array.size)] = odd.astype(array.dtype)[0]
        return array
    if array.size and array.dtype.kind in "US":
        longer = array.astype(f"{array.dtype.kind}400")
        longer.reshape(-1)[rng.randrange(array.size)] = (
            odd_text(rng).encode() if array.dtype.kind == "S" else odd_text(rng)
        )
        return longer
    return array


def mutate_safetensors(content: bytes, rng: random.Random) -> bytes:
    """Another header of the right length, other metadata, or other numbers."""
    n = struct.unpack("<Q", content[:8])[0]
    header, data = json.loads(content[8 : 8 + n]), bytearray(content[8 + n :])
    kind = rng.randrange(5)
    if kind == 0 and header.get("__metadata__"):
        key = rng.choice(sorted(header["__metadata__"]))
        header["__metadata__"][key] = odd_text(rng)
    elif kind == 1 and header.get("__metadata__"):
        text = header["__metadata__"]
        if rng.random() < 0.5:
            del text[rng.choice(sorted(text))]
        else:
            key = rng.choice(sorted(text))
            text[key] = json_text(mutate_tree(_as_json(text[key]), rng))
    elif kind == 2 and len(data) >= 4:
        at = 4 * rng.randrange(len(data) // 4)
        data[at : at + 4] = struct.pack("<f", rng.choice((float("nan"), float("inf"), 1e38, -1.0, 0.0)))
    elif kind == 3:
        names = [name for name in header if name != "__metadata__"]
        if len(names) > 1:
            one, other = rng.sample(names, 2)
            header[one], header[other] = header[other], header[one]
    else:
        header = mutate_tree(header, rng)
    encoded = json_text(header).encode("utf-8", "surrogatepass")
    return struct.pack("<Q", len(encoded)) + encoded + bytes(data)


def in_order(content: bytes) -> bytes:
    """A safetensors file with its texts in their order: the library writes them in another one each time."""
    n = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8 : 8 + n])
    header["__metadata__"] = dict(sorted(header.get("__metadata__", {}).items()))
    encoded = json.dumps(header, separators=(",", ":"), sort_keys=True).encode()
    encoded += b" " * (-len(encoded) % 8)
    return struct.pack("<Q", len(encoded)) + encoded + content[8 + n :]


def _as_json(text: str) -> Any:  # noqa: ANN401 - whatever JSON holds
    try:
        return json.loads(text)
    except ValueError:
        return [text]


def zip_mutation(members: Mapping[str, Mutation]) -> Mutation:
    """Mutations of one member of a zip file; `members` says by the end of their names how."""

    def mutate(content: bytes, rng: random.Random) -> bytes:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            files = {name: archive.read(name) for name in archive.namelist()}
        name = rng.choice(list(files))
        match rng.randrange(8):
            case 0:
                del files[name]
            case 1:
                files[odd_text(rng)[:60000] or "x"] = files.pop(name)
            case 2:
                files[name] = mutate_bytes(files[name], rng)
            case _:
                how = next((how for ending, how in members.items() if name.endswith(ending)), mutate_bytes)
                files[name] = how(files[name], rng)
        out = io.BytesIO()
        method = rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA))
        with zipfile.ZipFile(out, "w", method) as archive:
            for name, data in files.items():
                archive.writestr(zipfile.ZipInfo(name.replace("\ud800", "?")), data, method)
        packed = out.getvalue()
        return mutate_bytes(packed, rng) if rng.random() < 0.25 else packed

    return mutate


def mutate_xml(content: bytes, rng: random.Random) -> bytes:
    """An XML file with another attribute or text."""
    text = content.decode()
    found = list(re.finditer(r'"([^"]*)"|>([^<]+)<|<(\w+)', text))
    one = rng.choice(found)
    group = next(number for number in (1, 2, 3) if one[number] is not None)
    odd = odd_text(rng)
    if rng.random() < 0.7:
        odd = odd.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")
    return (text[: one.start(group)] + odd + text[one.end(group) :]).encode("utf-8", "surrogatepass")


def mutate_pickle(content: bytes, rng: random.Random) -> bytes:
    """A pickle of a changed record, as Python writes it now."""
    record = pickle.loads(content)
    key = rng.choice(list(record))
    match rng.randrange(5):
        case 0:
            del record[key]
        case 1:
            record[odd_text(rng)] = record.pop(key)
        case 2 if isinstance(record[key], list) and record[key]:
            record[key][rng.randrange(len(record[key]))] = odd_value(rng)
        case 3 if isinstance(record[key], np.ndarray):
            record[key] = _other_array(record[key], rng)
        case _:
            record[key] = odd_value(rng)
    return pickle.dumps(record, protocol=3)


def mutate_tar(content: bytes, rng: random.Random) -> bytes:
    """A tar file with one member renamed, turned into a link, or changed."""
    out = io.BytesIO()
    with tarfile.open(fileobj=io.BytesIO(content)) as old, tarfile.open(fileobj=out, mode="w") as new:
        members = old.getmembers()
        chosen = rng.choice(members)
        for member in members:
            data = old.extractfile(member)
            inside = data.read() if data else b""
            if member is chosen:
                kind = rng.randrange(4)
                if kind == 0:
                    member.name = odd_text(rng)[:200].replace("\0", "") or "x"
                elif kind == 1:
                    member.type, member.linkname = tarfile.SYMTYPE, "/etc/passwd"
                elif kind == 2:
                    inside = mutate_bytes(inside, rng)
                else:
                    inside = mutate_pickle(inside, rng)
                member.size = len(inside)
            new.addfile(member, io.BytesIO(inside))
    packed = gzip.compress(out.getvalue(), mtime=0)
    return mutate_bytes(packed, rng) if rng.random() < 0.25 else packed


def mutate_sqlite(content: bytes, rng: random.Random) -> bytes:
    """A database with an odd value in one cell, a row or table gone, or another version."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:
        path = Path(folder, "x.sqlite")
        path.write_bytes(content)
        db = sqlite3.connect(path, isolation_level=None)
        db.execute("PRAGMA foreign_keys = OFF")
        db.execute("PRAGMA journal_mode = DELETE")
        db.execute("PRAGMA synchronous = OFF")
        db.execute("PRAGMA ignore_check_constraints = ON")
        tables = [row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        filled = [name for name in tables if db.execute(f"SELECT 1 FROM {name} LIMIT 1").fetchone()]
        try:
            _change_database(db, rng, rng.choice(filled), rng.choice(tables))
        except sqlite3.DatabaseError:  # a constraint stood in the way: the database is as it was
            db.execute(f"PRAGMA user_version = {rng.choice((0, 1, 99, -1, 2**31 - 1))}")
        db.close()
        return path.read_bytes()


def _change_database(db: sqlite3.Connection, rng: random.Random, filled: str, table: str) -> None:
    columns = [row[1] for row in db.execute(f"PRAGMA table_info({filled})")]
    column = rng.choice(columns)
    odd: Any = rng.choice((*ODD_NUMBERS, None, b"", b"\0\1\2", odd_text(rng), odd_text(rng)))
    if isinstance(odd, int) and not -(2**63) <= odd < 2**63:
        odd = float(odd)
    match rng.randrange(10):
        case 0:
            db.execute(f"DELETE FROM {filled} WHERE {_some_row(db, filled, rng)}")
        case 1:
            db.execute(f"DROP TABLE {table}")
        case 2:
            db.execute(f"DELETE FROM {filled}")
        case 3:
            db.execute(f"ALTER TABLE {filled} RENAME COLUMN {column} TO other_{column}")
        case _:
            db.execute(f"UPDATE {filled} SET {column} = ? WHERE {_some_row(db, filled, rng)}", (odd,))


def _some_row(db: sqlite3.Connection, table: str, rng: random.Random) -> str:
    n = db.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0]
    return f"rowid = (SELECT rowid FROM {table} LIMIT 1 OFFSET {rng.randrange(n)})"
