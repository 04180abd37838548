package flows

// comparisonsAt are the rows about a node that steers nothing, with so many bindings. All are of rates.
func comparisonsAt(bindings int) []comparison {
	nftablesRandom, legacyRandom := 0.95, 0.90
	if bindings > 1_000 {
		nftablesRandom, legacyRandom = 0.80, 0.65
	}
	return []comparison{
		{nftablesMap, single, onePod, false, 0.97, 0},
		{legacyTree, single, onePod, false, 0.95, 0},
		{nftTree, single, onePod, false, 0.85, 0},
		{noneLegacy, single, onePod, false, 0, 0},
		{singleAgain, single, onePod, false, 0, 0},
		{singleMap, single, onePod, false, 0, 0},

		{nftablesMap, single, randomPods, false, nftablesRandom, 0},
		{legacyTree, single, randomPods, false, legacyRandom, 0},
		{nftTree, single, randomPods, false, 0, 0},
		{singleAgain, single, randomPods, false, 0, 0},
		{singleMap, single, randomPods, false, 0, 0},

		{nftablesMap, noneNFTables, oneUnbound, false, 0.95, 0},
		{legacyTree, noneLegacy, oneUnbound, false, 0.95, 0},
		{nftTree, noneNFT, oneUnbound, false, 0.95, 0},
		{singleMap, noneNFTables, oneUnbound, false, 0, 0},

		{nftablesMap, noneNFTables, unbound, false, 0.95, 0},
		{legacyTree, noneLegacy, unbound, false, 0.95, 0},
		{nftTree, noneNFT, unbound, false, 0.95, 0},
		{singleMap, noneNFTables, unbound, false, 0, 0},

		{nftablesMap, single, randomPods, true, 0.98, 0},
		{legacyTree, single, randomPods, true, 0.98, 0},
		{nftTree, single, randomPods, true, 0.98, 0},
	}
}
