-- Dissects LACK frames (docs/wire-lack.md).
--
-- Use it once:      tshark -X lua_script:docs/wireshark/lack.lua -r FILE
-- or always:        copy it into the folder that Wireshark names under Help, About, Folders,
--                   "Personal Lua Plugins".
--
-- Frames are found behind link type USER1 (148). Other carriers hand frames to the dissector "lack".
-- What is encrypted cannot be dissected.

local lack = Proto("lack", "LACK")

local KINDS = { [0] = "Ack", "Packet", "Once", "Skip", "Hello" }
local FIXED_LEN = { [0] = 8, 18, 18, 18, 12 }
local ACK_LEN, EACK_LEN, AFTER_LEN = 14, 4, 2

local f = {
    version = ProtoField.uint8("lack.version", "Version", base.DEC, nil, 0xf0),
    kind = ProtoField.uint8("lack.kind", "Kind", base.DEC, KINDS, 0x0f),
    flags = ProtoField.uint8("lack.flags", "Flags", base.HEX),
    ack_present = ProtoField.bool("lack.flags.ack", "Local ACK present", 8, nil, 0x01),
    eack_present = ProtoField.bool("lack.flags.eack", "EACKs present", 8, nil, 0x02),
    after_present = ProtoField.bool("lack.flags.after", "After present", 8, nil, 0x04),
    ethernet = ProtoField.bool("lack.flags.ethernet", "Payload is Ethernet", 8, nil, 0x08),
    checksum = ProtoField.uint16("lack.checksum", "Header checksum", base.HEX),
    run = ProtoField.uint32("lack.run", "Run", base.HEX),
    from = ProtoField.uint32("lack.from", "Epoch of the sender", base.HEX),
    to = ProtoField.uint32("lack.to", "Epoch of the receiver", base.HEX),
    length = ProtoField.uint16("lack.length", "Payload length"),
    serial = ProtoField.uint32("lack.serial", "Serial number"),
    seq = ProtoField.uint32("lack.seq", "Sequence number"),
    after = ProtoField.uint16("lack.after", "After the one so much lower"),
    next = ProtoField.uint32("lack.ack.next", "Next expected (p_number)"),
    highest_serial = ProtoField.uint32("lack.ack.highest_serial", "Highest serial number known"),
    delay = ProtoField.double("lack.ack.delay", "Delay in ms"),
    correct = ProtoField.uint32("lack.ack.correct", "CACKs", base.HEX),
    cack = ProtoField.uint32("lack.ack.cack", "CACK of transmission"),
    erroneous = ProtoField.uint32("lack.ack.erroneous", "EACKs", base.HEX),
    eack = ProtoField.uint32("lack.ack.eack", "EACK of transmission"),
}
lack.fields = f

local e_version = ProtoExpert.new("lack.bad_version", "Version is not 1",
    expert.group.MALFORMED, expert.severity.ERROR)
local e_short = ProtoExpert.new("lack.short", "Shorter than its header says",
    expert.group.MALFORMED, expert.severity.ERROR)
local e_checksum = ProtoExpert.new("lack.bad_checksum", "Header is damaged",
    expert.group.CHECKSUM, expert.severity.ERROR)
lack.experts = { e_version, e_short, e_checksum }

local function has(flags, bit) return math.floor(flags / bit) % 2 == 1 end

-- The Internet checksum of a header with its checksum: 0 if it is right.
local function internet(buffer)
    local sum = 0
    for at = 0, buffer:len() - 2, 2 do sum = sum + buffer(at, 2):uint() end
    while sum > 65535 do sum = sum % 65536 + math.floor(sum / 65536) end
    return 65535 - sum
end

-- The transmissions that a bit field names; serial numbers wrap at 2^32.
local function dissect_bits(buffer, tree, field, highest)
    for bit = 0, 31 do
        if buffer:bitfield(31 - bit, 1) == 1 then
            tree:add(field, buffer, (highest - bit) % 4294967296)
        end
    end
end

local function dissect_ack(buffer, tree)
    local next, highest = buffer(0, 4):uint(), buffer(4, 4):uint()
    local ack = tree:add(buffer(), "Local ACK, next expected: " .. next)
    ack:add(f.next, buffer(0, 4))
    ack:add(f.highest_serial, buffer(4, 4))
    ack:add(f.delay, buffer(8, 2), buffer(8, 2):uint() * 0.016)
    ack:add(f.correct, buffer(10, 4))
    dissect_bits(buffer(10, 4), ack, f.cack, highest)
    if buffer:len() > ACK_LEN then
        ack:add(f.erroneous, buffer(ACK_LEN, EACK_LEN))
        dissect_bits(buffer(ACK_LEN, EACK_LEN), ack, f.eack, highest)
    end
end

-- How long the header is.
local function header_len(kind, flags)
    local len = FIXED_LEN[kind]
    if kind == 4 then return len end
    if has(flags, 4) and kind ~= 0 then len = len + AFTER_LEN end
    if has(flags, 1) then
        len = len + ACK_LEN
        if has(flags, 2) then len = len + EACK_LEN end
    end
    return len
end

-- Returns where the local ACK begins.
local function dissect_numbers(buffer, tree, kind, flags)
    if kind == 4 then
        tree:add(f.from, buffer(4, 4))
        tree:add(f.to, buffer(8, 4))
        return 12
    end
    tree:add(f.run, buffer(4, 4))
    if kind == 0 then return 8 end
    tree:add(f.length, buffer(8, 2))
    tree:add(f.serial, buffer(10, 4))
    tree:add(f.seq, buffer(14, 4))
    if not has(flags, 4) then return 18 end
    tree:add(f.after, buffer(18, 2))
    return 20
end

function lack.dissector(buffer, pinfo, root)
    pinfo.cols.protocol = "LACK"
    local tree = root:add(lack, buffer())
    if buffer:len() < 4 then
        tree:add_proto_expert_info(e_short)
        return
    end
    tree:add(f.version, buffer(0, 1))
    tree:add(f.kind, buffer(0, 1))
    local kind, flags = buffer(0, 1):bitfield(4, 4), buffer(1, 1):uint()
    local flag_tree = tree:add(f.flags, buffer(1, 1))
    for _, field in ipairs({ f.ack_present, f.eack_present, f.after_present, f.ethernet }) do
        flag_tree:add(field, buffer(1, 1))
    end
    tree:add(f.checksum, buffer(2, 2))
    if buffer(0, 1):bitfield(0, 4) ~= 1 or not KINDS[kind] then
        tree:add_proto_expert_info(e_version)
        return
    end
    local len = header_len(kind, flags)
    if buffer:len() < len then
        tree:add_proto_expert_info(e_short)
        return
    end
    if internet(buffer(0, len)) ~= 0 then tree:add_proto_expert_info(e_checksum) end
    tree:set_len(len)
    local info = KINDS[kind]
    if kind >= 1 and kind <= 3 then info = info .. " " .. buffer(14, 4):uint() end
    local at = dissect_numbers(buffer, tree, kind, flags)
    if at < len then
        dissect_ack(buffer(at, len - at):tvb(), tree)
        info = info .. " ACK " .. buffer(at, 4):uint()
    end
    if kind == 1 or kind == 2 then
        local payload_len = math.min(buffer(8, 2):uint(), buffer:len() - len)
        if payload_len > 0 then
            local name = has(flags, 8) and "eth_withoutfcs" or "ip"
            Dissector.get(name):call(buffer(len, payload_len):tvb(), pinfo, root)
            pinfo.cols.protocol:prepend("LACK/")
            info = info .. " | "
        end
    end
    pinfo.cols.info:prepend(info)
end

DissectorTable.get("wtap_encap"):add(wtap.USER1, lack)
