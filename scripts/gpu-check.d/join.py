"""One table of our times and those of peers, from the files that the check of a GPU leaves in a folder."""
import json
import pathlib
import sys


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines() if line.startswith("{")] if path.exists() else []


def main():
    folder = pathlib.Path(sys.argv[1])
    times, speeds = {}, {}
    for line in lines(folder / "ours.jsonl"):
        times.setdefault(line["op"], {})[line["variant"]] = line["ns_median"]
        speeds.setdefault(line["op"], {})[line["variant"]] = line["gflops"]
    if not times:
        sys.exit("no operator was measured")
    for line in lines(folder / "peers.jsonl"):
        times.setdefault(line["op"], {})[line["peer"]] = line["ns_median"]
    columns = ["default", "tuned", "torch", "triton"]
    rows = [["operator", *(f"{column} µs" for column in columns), "GFLOP/s", "tuned/torch"]]
    for operator, own in times.items():
        row = [operator] + [f"{own[column] / 1e3:.2f}" if column in own else "" for column in columns]
        speed = speeds.get(operator, {}).get("tuned")
        row.append(f"{speed:.1f}" if speed else "")
        row.append(f"{own['torch'] / own['tuned']:.2f}" if "torch" in own and "tuned" in own else "")
        rows.append(row)
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    text = "\n".join("  ".join(cell.ljust(width) if place == 0 else cell.rjust(width)
                               for place, (cell, width) in enumerate(zip(row, widths))) for row in rows)
    (folder / "table.txt").write_text(text + "\n")
    print(text)
    print("tuned/torch: how many times as fast as PyTorch the tuned kernel is")


main()
