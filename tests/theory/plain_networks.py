"""The analysed networks written out token by token with Python's integers, as their papers' equations have them."""

import math

from shapelaw.theory.networks import DegreeAttention, MixerNetwork, ProductNetwork


def params_of(network):
    """Number of parameters: the `L k N_d` of the note, k + 1 matrices a block, or the maps of a Mixer."""
    d = network.width
    if isinstance(network, MixerNetwork):
        return network.depth * (2 * network.units * network.tokens + d**2)
    output = isinstance(network, DegreeAttention)
    assert output or isinstance(network, ProductNetwork)
    return sum(k + output for k in network.degrees) * d**2


def times(matrix, vector, prime):
    return [sum(int(a) * b for a, b in zip(row, vector, strict=True)) % prime for row in matrix]


def plain_attention(tokens, layers, residual, prime):
    """Eq. 3 of Levine et al. 2020, with `W_O W_V` and `W_K^T W_Q` for the four matrices of a head."""
    for layer in layers:
        found = []
        for x_i in tokens:
            total = list(x_i) if residual else [0] * len(x_i)
            for values, scores in zip(layer.values, layer.scores, strict=True):
                asked = times(scores, x_i, prime)
                for x_j in tokens:
                    weight = sum(a * b for a, b in zip(asked, x_j, strict=True)) % prime
                    moved = times(values, x_j, prime)
                    total = [(t + weight * m) % prime for t, m in zip(total, moved, strict=True)]
            found.append(total)
        tokens = found
    return tokens


def plain_product(numbers, weights, prime):
    """Element-wise products of `W x`, layer by layer."""
    for layer in weights:
        product = [1] * len(layer[0])
        for factor in layer:
            moved = times(factor, numbers, prime)
            product = [a * b % prime for a, b in zip(product, moved, strict=True)]
        numbers = product
    return numbers


def plain_degree_attention(tokens, blocks, heads, prime):
    """Blocks of degree k, head by head, as the definition of `shapelaw.theory.networks` has them."""
    for block in blocks:
        moved = [[times(weights, x, prime) for weights in block.maps] for x in tokens]
        degree, d, found = len(block.maps), len(tokens[0]), []
        values = [
            [math.prod(row[place] for row in [maps[0], *maps[3:]]) % prime for place in range(d)]
            for maps in moved
        ]
        pooled = [sum(column) % prime for column in zip(*values, strict=True)]
        for i in range(len(tokens)):
            if degree == 1:
                mixed = pooled
            elif degree == 2:
                mixed = [q * s % prime for q, s in zip(moved[i][1], pooled, strict=True)]
            else:
                mixed = []
                for head in range(heads):
                    part = slice(head * d // heads, (head + 1) * d // heads)
                    weights = [
                        sum(q * k for q, k in zip(moved[i][2][part], maps[1][part], strict=True)) % prime
                        for maps in moved
                    ]
                    columns = zip(*(row[part] for row in values), strict=True)
                    mixed += [
                        sum(w * v for w, v in zip(weights, column, strict=True)) % prime for column in columns
                    ]
            found.append(times(block.output, mixed, prime))
        tokens = found
    return tokens


def plain_mixer(tokens, blocks, prime):
    """Blocks of an MLP-Mixer with squares for activations: token by token, channel by channel."""
    for block in blocks:
        channels = [list(row) for row in zip(*tokens, strict=True)]
        mixed = []
        for row in channels:
            hidden = [unit**2 % prime for unit in times(block.up, row, prime)]
            mixed.append(times(block.down, hidden, prime))
        tokens = [times(block.channels, token, prime) for token in zip(*mixed, strict=True)]
    return tokens
