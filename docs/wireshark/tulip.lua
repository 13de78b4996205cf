-- Dissects TULIP frames (docs/wire-tulip.md) and the datagrams in which `airmend link` carries them.
--
-- Use it once:      tshark -X lua_script:docs/wireshark/tulip.lua -r FILE
-- or always:        copy it into the folder that Wireshark names under Help, About, Folders,
--                   "Personal Lua Plugins".
--
-- Frames are found behind EtherType 0x88b5, behind link type USER0 (147), and in UDP datagrams of a
-- port that "Decode As" gives to AIRMEND-LINK. What is encrypted cannot be dissected.

local tulip = Proto("tulip", "TULIP")
local link = Proto("airmend_link", "airmend link")

local KINDS = { [0] = "Control", "Reliable", "Unreliable", "Skip" }
local HEADER_LEN, ACK_LEN, COVERED_LEN, MARKS_LEN = 22, 12, 2, 2

local f = {
    version = ProtoField.uint8("tulip.version", "Version", base.DEC, nil, 0xf0),
    kind = ProtoField.uint8("tulip.kind", "Kind", base.DEC, KINDS, 0x0f),
    flags = ProtoField.uint8("tulip.flags", "Flags", base.HEX),
    ack_present = ProtoField.bool("tulip.flags.ack", "Link ACK present", 8, nil, 0x01),
    poll = ProtoField.bool("tulip.flags.poll", "Answer wanted", 8, nil, 0x02),
    more = ProtoField.bool("tulip.flags.more", "More in this turn", 8, nil, 0x04),
    ethernet = ProtoField.bool("tulip.flags.ethernet", "Payload is Ethernet", 8, nil, 0x08),
    by_serial = ProtoField.bool("tulip.flags.by_serial", "Reads reports", 8, nil, 0x10),
    report = ProtoField.bool("tulip.flags.report", "Link ACK is a report", 8, nil, 0x20),
    reads_ecn = ProtoField.bool("tulip.flags.reads_ecn", "Reads ECN", 8, nil, 0x40),
    answers_ce = ProtoField.bool("tulip.flags.answers_ce", "Answers for CE", 8, nil, 0x80),
    length = ProtoField.uint16("tulip.length", "Payload length"),
    from = ProtoField.uint32("tulip.from", "Epoch of the sender", base.HEX),
    to = ProtoField.uint32("tulip.to", "Epoch of the receiver", base.HEX),
    serial = ProtoField.uint32("tulip.serial", "Serial number"),
    seq = ProtoField.uint32("tulip.seq", "Sequence number"),
    after = ProtoField.uint16("tulip.after", "After the one so much lower"),
    next = ProtoField.uint32("tulip.ack.next", "Next expected"),
    highest_serial = ProtoField.uint32("tulip.ack.highest_serial", "Highest serial number received"),
    delay = ProtoField.double("tulip.ack.delay", "Delay in ms"),
    vector_len = ProtoField.uint16("tulip.ack.vector_len", "Bit vector length"),
    vector = ProtoField.bytes("tulip.ack.vector", "Bit vector"),
    arrived = ProtoField.uint32("tulip.ack.arrived", "Arrived beyond it"),
    covered = ProtoField.uint16("tulip.ack.covered", "Transmissions covered", base.DEC, nil, 0x7fff),
    marks = ProtoField.uint16("tulip.ack.marks", "Frames marked CE"),
    missing = ProtoField.uint32("tulip.ack.missing", "Transmission missing"),
}
tulip.fields = f

local e_version = ProtoExpert.new("tulip.bad_version", "Version is not 1",
    expert.group.MALFORMED, expert.severity.ERROR)
local e_short = ProtoExpert.new("tulip.short", "Shorter than its header says",
    expert.group.MALFORMED, expert.severity.ERROR)
tulip.experts = { e_version, e_short }

-- The bit vector, its numbers spelt out: those from `first` on, upwards or downwards; numbers wrap at
-- 2^32.
local function dissect_vector(buffer, tree, field, first, step)
    tree:add(f.vector, buffer())
    for j = 0, buffer:len() - 1 do
        local byte = buffer(j, 1)
        for i = 0, 7 do
            if byte:bitfield(7 - i, 1) == 1 then
                tree:add(field, byte, (first + step * (8 * j + i)) % 4294967296)
            end
        end
    end
end

-- Returns how long the link ACK is; nothing if it is cut off.
local function dissect_ack(buffer, tree, is_report)
    local fixed_len = is_report and ACK_LEN + COVERED_LEN or ACK_LEN
    if buffer:len() < fixed_len then return nil end
    local has_marks = is_report and buffer(ACK_LEN, 1):bitfield(0, 1) == 1
    if has_marks then fixed_len = fixed_len + MARKS_LEN end
    if buffer:len() < fixed_len then return nil end
    local vector_len = buffer(10, 2):uint()
    if buffer:len() < fixed_len + vector_len then return nil end
    local next, highest = buffer(0, 4):uint(), buffer(4, 4):uint()
    local ack = tree:add(buffer(0, fixed_len + vector_len), "Link ACK, next expected: " .. next)
    ack:add(f.next, buffer(0, 4))
    ack:add(f.highest_serial, buffer(4, 4))
    ack:add(f.delay, buffer(8, 2), buffer(8, 2):uint() * 0.016)
    ack:add(f.vector_len, buffer(10, 2))
    if is_report then ack:add(f.covered, buffer(ACK_LEN, COVERED_LEN)) end
    if has_marks then ack:add(f.marks, buffer(ACK_LEN + COVERED_LEN, MARKS_LEN)) end
    if vector_len > 0 then
        local vector = buffer(fixed_len, vector_len):tvb()
        if is_report then
            dissect_vector(vector, ack, f.missing, highest, -1)
        else
            dissect_vector(vector, ack, f.arrived, next + 1, 1)
        end
    end
    return fixed_len + vector_len
end

local function dissect_header(buffer, tree)
    tree:add(f.version, buffer(0, 1))
    tree:add(f.kind, buffer(0, 1))
    local flags = tree:add(f.flags, buffer(1, 1))
    local flag_fields = {
        f.ack_present, f.poll, f.more, f.ethernet, f.by_serial, f.report, f.reads_ecn, f.answers_ce,
    }
    for _, field in ipairs(flag_fields) do
        flags:add(field, buffer(1, 1))
    end
    tree:add(f.length, buffer(2, 2))
    tree:add(f.from, buffer(4, 4))
    tree:add(f.to, buffer(8, 4))
    tree:add(f.serial, buffer(12, 4))
    tree:add(f.seq, buffer(16, 4))
    tree:add(f.after, buffer(20, 2))
end

function tulip.dissector(buffer, pinfo, root)
    pinfo.cols.protocol = "TULIP"
    local tree = root:add(tulip, buffer())
    if buffer:len() < HEADER_LEN then
        tree:add_proto_expert_info(e_short)
        return
    end
    dissect_header(buffer, tree)
    if buffer(0, 1):bitfield(0, 4) ~= 1 then
        tree:add_proto_expert_info(e_version)
        return
    end
    local kind, flags = buffer(0, 1):bitfield(4, 4), buffer(1, 1):uint()
    local info = KINDS[kind] or "Unknown kind"
    if kind ~= 0 then info = info .. " " .. buffer(16, 4):uint() end
    local at = HEADER_LEN
    if flags % 2 == 1 then
        local ack_len = dissect_ack(buffer(at):tvb(), tree, math.floor(flags / 32) % 2 == 1)
        if not ack_len then
            tree:add_proto_expert_info(e_short)
            return
        end
        info = info .. " ACK " .. buffer(at, 4):uint()
        at = at + ack_len
    end
    if math.floor(flags / 2) % 2 == 1 then info = info .. " poll" end
    tree:set_len(at)
    local payload_len = math.min(buffer(2, 2):uint(), buffer:len() - at)
    if payload_len > 0 and (kind == 1 or kind == 2) then
        local name = math.floor(flags / 8) % 2 == 1 and "eth_withoutfcs" or "ip"
        Dissector.get(name):call(buffer(at, payload_len):tvb(), pinfo, root)
        pinfo.cols.protocol:prepend("TULIP/")
        info = info .. " | "
    end
    pinfo.cols.info:prepend(info)
end

local DATAGRAMS = {
    "Handshake initiation", "Handshake response", "Sealed frame", "Unknown session", "Open frame",
}
local l_kind = ProtoField.uint8("airmend_link.kind", "Kind", base.DEC, DATAGRAMS)
local l_session = ProtoField.uint24("airmend_link.session", "Session", base.HEX)
local l_counter = ProtoField.uint64("airmend_link.counter", "Counter")
link.fields = { l_kind, l_session, l_counter }

function link.dissector(buffer, pinfo, root)
    if buffer:len() < 1 then return 0 end
    local kind = buffer(0, 1):uint()
    if not DATAGRAMS[kind] then return 0 end
    pinfo.cols.protocol = "AIRMEND"
    pinfo.cols.info = DATAGRAMS[kind]
    local tree = root:add(link, buffer())
    tree:add(l_kind, buffer(0, 1))
    if kind ~= 1 and buffer:len() >= 4 then tree:add(l_session, buffer(1, 3)) end
    if kind == 3 and buffer:len() >= 12 then tree:add(l_counter, buffer(4, 8)) end
    if kind == 5 and buffer:len() > 4 then
        tree:set_len(4)
        tulip.dissector(buffer(4):tvb(), pinfo, root)
    end
    return buffer:len()
end

DissectorTable.get("wtap_encap"):add(wtap.USER0, tulip)
DissectorTable.get("ethertype"):add(0x88b5, link)
DissectorTable.get("udp.port"):add_for_decode_as(link)
