/* Licences of the libraries in this file: NOTICE.txt */
import{a,b,c}from"./chunk-U7DVYYDD.js";import"./chunk-WE5DYMEX.js";import"./chunk-OL5XJZGW.js";import"./chunk-OOJM4CTU.js";export{c as default,a as isOf,b as useLastRuns};
